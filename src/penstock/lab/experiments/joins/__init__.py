"""The joins of streams and tables: what they find, and what they keep for it."""
