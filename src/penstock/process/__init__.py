"""Answers on Spark: the session, topics as typed columns, operators, and results as they are written."""

from typing import TYPE_CHECKING

from penstock.on_demand import on_demand

if TYPE_CHECKING:
    from penstock.process import dedup, joins, keyed, lookup, patterns, ranking, sketches, windows
    from penstock.process.spark.session import session
    from penstock.process.wire.events import typed, undecodable
    from penstock.process.wire.known_schemas import KnownSchemas, known_schemas
    from penstock.process.wire.messages import encoded
    from penstock.process.wire.source import kafka_rows
    from penstock.process.wire.topics import read

__all__ = [
    "KnownSchemas",
    "dedup",
    "encoded",
    "joins",
    "kafka_rows",
    "keyed",
    "known_schemas",
    "lookup",
    "patterns",
    "ranking",
    "read",
    "session",
    "sketches",
    "typed",
    "undecodable",
    "windows",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "KnownSchemas": "wire.known_schemas",
        "dedup": "dedup",
        "encoded": "wire.messages",
        "joins": "joins",
        "kafka_rows": "wire.source",
        "keyed": "keyed",
        "known_schemas": "wire.known_schemas",
        "lookup": "lookup",
        "patterns": "patterns",
        "ranking": "ranking",
        "read": "wire.topics",
        "session": "spark.session",
        "sketches": "sketches",
        "typed": "wire.events",
        "undecodable": "wire.events",
        "windows": "windows",
    },
)
