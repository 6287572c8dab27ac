"""Faults on a seeded schedule, against the shop's pipeline, with the real broker and the real database."""
