"""Partitions: keys and groups on six of them, and what is lost when a leader is."""
