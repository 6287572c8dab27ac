"""Keyed state: what has recently happened to a key, beside each of its events, and columns over it."""

from penstock.process.keyed.columns import (
    avg,
    count,
    distinct,
    events,
    kilometres,
    max,
    min,
    previous,
    since,
    speed_kmh,
    sum,
)
from penstock.process.keyed.recent import recent
from penstock.process.keyed.stateful import stateful

__all__ = [
    "avg",
    "count",
    "distinct",
    "events",
    "kilometres",
    "max",
    "min",
    "previous",
    "recent",
    "since",
    "speed_kmh",
    "stateful",
    "sum",
]
