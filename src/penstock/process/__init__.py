"""Answers on Spark: the session, topics as typed columns, and results as they are written."""

from penstock.process.session import session
from penstock.process.source import KnownSchemas, kafka_rows, known_schemas, typed, undecodable
from penstock.process.target import encoded

__all__ = ["KnownSchemas", "encoded", "kafka_rows", "known_schemas", "session", "typed", "undecodable"]
