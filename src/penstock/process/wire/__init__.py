"""Topics as typed columns, and results as messages."""
