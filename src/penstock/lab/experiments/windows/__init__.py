"""Windows over event time: what is late, what becomes of it, and what processing time would show."""
