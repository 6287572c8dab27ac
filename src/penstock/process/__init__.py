"""Answers on Spark: the session, topics as typed columns, and results as they are written."""

from penstock.process.spark.session import session
from penstock.process.wire.messages import encoded
from penstock.process.wire.source import KnownSchemas, kafka_rows, known_schemas, typed, undecodable

__all__ = ["KnownSchemas", "encoded", "kafka_rows", "known_schemas", "session", "typed", "undecodable"]
