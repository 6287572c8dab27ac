"""Capture beside dual writes: one table, its copies, and how far each is behind."""
