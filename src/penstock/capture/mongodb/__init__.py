"""Captures of MongoDB: its change streams."""
