"""Answers on Spark: the session, a topic as typed columns (`read`), and operators."""

from typing import TYPE_CHECKING

from penstock.on_demand import on_demand

if TYPE_CHECKING:
    from penstock.process import dedup, joins, keyed, lookup, patterns, ranking, sketches, windows
    from penstock.process.spark.session import session
    from penstock.process.wire.topics import read

__all__ = [
    "dedup",
    "joins",
    "keyed",
    "lookup",
    "patterns",
    "ranking",
    "read",
    "session",
    "sketches",
    "windows",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "dedup": "dedup",
        "joins": "joins",
        "keyed": "keyed",
        "lookup": "lookup",
        "patterns": "patterns",
        "ranking": "ranking",
        "read": "wire.topics",
        "session": "spark.session",
        "sketches": "sketches",
        "windows": "windows",
    },
)
