"""Queries in SQL over what a flow reads."""
