"""Answers on Spark."""

from penstock.process.session import session

__all__ = ["session"]
