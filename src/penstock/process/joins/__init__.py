"""Joins: events of two streams that happened near each other."""

from penstock.process.joins.within import within

__all__ = ["within"]
