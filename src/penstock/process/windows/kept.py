"""What is kept of rows until their windows are over, and what every kind of window does with it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from penstock.process.columns.names import END, START
from penstock.process.windows.aggregates import Aggregate
from penstock.process.windows.overflow import refuse_overflow

KIND, ROWS = "kind", "rows"
ON_TIME, LATE, CORRECTED, RETRACTED = "on time", "late", "corrected", "retracted"
RETRACTIONS = (RETRACTED, "withdrawn")  # the second as earlier releases have written it
FIRST = (ON_TIME, LATE)  # the kinds of a window's first result: a late one is all of events that came late
EVENT = "_event"  # a whole event, where it is to be emitted itself


@dataclass(frozen=True)
class Taken:
    """What came of a step: what is kept, results, rows that were too late, and when to look again.

    `missed` counts rows once for each of their windows that was over already.
    """

    kept: pl.DataFrame
    results: pl.DataFrame
    late: pl.DataFrame
    timer: int | None
    missed: int = 0


@dataclass(frozen=True)
class Kept(ABC):
    """Windows of some keys; times are in microseconds. They can change for `within` after their end."""

    place: ClassVar[str]  # the column with a window's start
    by: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    within: int

    @abstractmethod
    def take(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Taken:
        """Take rows in and fire what is due at the watermark `now`; `last` was that of the step before."""

    def started(self, rows: pl.DataFrame, *place: str) -> pl.DataFrame:
        """Fold rows of the same key and place."""
        groups = rows.group_by(*self.by, *place)
        refuse_overflow(rows, groups, self.aggregates)
        return groups.agg(*self.start())

    def start(self) -> list[pl.Expr]:
        """What is kept of the rows of a group."""
        parts = [aggregate.start(name).alias(name) for name, aggregate in self.aggregates.items()]
        return [pl.len().cast(pl.Int64).alias(ROWS), *parts]

    def merged(self, parts: pl.DataFrame, *place: str, also: Sequence[pl.Expr] = ()) -> pl.DataFrame:
        """Fold what was folded before."""
        merged = [aggregate.merge(name).alias(name) for name, aggregate in self.aggregates.items()]
        groups = parts.group_by(*self.by, *place)
        refuse_overflow(parts, groups, self.aggregates)
        return groups.agg(pl.col(ROWS).sum(), *merged, *also)

    def finished(self, results: pl.DataFrame) -> pl.DataFrame:
        """Return results with the values that their parts stand for."""
        values = [aggregate.finish(name).alias(name) for name, aggregate in self.aggregates.items()]
        return results.select(*self.by, START, END, KIND, ROWS, *values)


def kind(*, emitted: pl.Expr, waited: pl.Expr) -> pl.Expr:
    """Return the kind of results: whether one was emitted before, or else had waited for the watermark."""
    first = pl.when(waited).then(pl.lit(ON_TIME)).otherwise(pl.lit(LATE))
    return pl.when(emitted).then(pl.lit(CORRECTED)).otherwise(first).alias(KIND)


def flag(name: str, value: bool) -> pl.Expr:
    """Return a column that says yes or no of every row."""
    return pl.lit(value).alias(name)
