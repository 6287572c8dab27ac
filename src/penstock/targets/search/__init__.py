"""Results into a full-text index, each exactly once."""

from penstock.targets.search.target import SearchIndex

__all__ = ["SearchIndex"]
