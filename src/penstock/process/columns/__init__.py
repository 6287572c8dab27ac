"""Columns: the platform's own names, keys, where a column comes from, and what is refused."""
