"""Spark itself: the session, its Python workers, and what its Java says."""
