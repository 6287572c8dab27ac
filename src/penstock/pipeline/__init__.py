"""Flows described, then run in three modes."""
