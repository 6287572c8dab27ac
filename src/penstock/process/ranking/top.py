"""The greatest keys of all time: emitted again where the ranking has changed."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from penstock.errors import FlowError
from penstock.process.columns.lineage import original
from penstock.process.columns.names import TIME
from penstock.process.columns.naming import keys_of, quoted, refuse_keys, refuse_own, refuse_taken
from penstock.process.state.description import StateDescription
from penstock.process.state.step import Stepped
from penstock.process.state.vectorised import columns_of, vectorised
from penstock.process.time.order import order_of
from penstock.process.windows.aggregates import Aggregate, Max
from penstock.process.windows.kept import ROWS, Kept, Taken
from penstock.process.windows.native import RANK
from penstock.process.windows.stateful import fields_of, inputs_of, original_kinds
from penstock.process.windows.steps import narrowed, widened

PLACE = "place"
RESULT_COLUMNS = (PLACE, RANK, ROWS)  # what every result has besides its key and its values


@dataclass(frozen=True)
class Ranks(Kept):
    """All keys with what is counted of them. Pure; no Spark."""

    count: int
    order: str
    keep: int | None = None  # of the best keys, or all

    def take(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Taken:  # noqa: ARG002
        keys, changed = self.take_folded(kept, self.folded(rows))
        return Taken(keys, changed, rows.clear(), None)

    def folded(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Fold the rows of a key."""
        return self._best(self.started(rows))

    def take_folded(self, kept: pl.DataFrame | None, new: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Take in rows that were folded before; return all keys, and the places that have changed."""
        old = new.clear() if kept is None else kept
        keys = self._best(self.merged(pl.concat([old, new])))
        before, after = self._top(old), self._top(keys)
        return keys, after.join(before, on=after.columns, how="anti", nulls_equal=True)

    def finished(self, results: pl.DataFrame) -> pl.DataFrame:
        """The values were needed for the order already."""
        return results

    def _best(self, keys: pl.DataFrame) -> pl.DataFrame:
        """What is kept: a key that is not among the best can only come back with a greater value."""
        if self.keep is None:
            return keys
        value = self.aggregates[self.order].finish(self.order)
        return keys.sort(value, *self.by, descending=True, nulls_last=True).head(self.keep)

    def _top(self, keys: pl.DataFrame) -> pl.DataFrame:
        values = [aggregate.finish(name).alias(name) for name, aggregate in self.aggregates.items()]
        found = keys.select(*self.by, ROWS, *values).drop_nulls(self.order)
        best = found.sort(self.order, *self.by, descending=True, nulls_last=True).head(self.count)
        rank = pl.col(self.order).rank("min", descending=True).cast(pl.Int32).alias(RANK)
        places = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).alias(PLACE)
        return best.select(*self.by, places, rank, ROWS, *self.aggregates)


@dataclass(frozen=True)
class RankFold:
    """Folds rows before they are shuffled, so that a key's rows cross as one."""

    ranks: Ranks

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        return self.ranks.folded(widened(rows, self.ranks.aggregates))


@dataclass(frozen=True)
class RankStep:
    """A step over rows that were folded before: the places that have changed."""

    ranks: Ranks

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped:  # noqa: ARG002
        keys, changed = self.ranks.take_folded(kept, rows)
        return Stepped(keys, narrowed(changed), None)


def top(
    count: int, order: str, *, by: str | tuple[str, ...], keep: int | None = None, **aggregates: Aggregate
) -> Callable[[DataFrame], DataFrame]:
    """Return the keys in which a value is greatest, over all events so far.

        games.transform(ranking.top(10, "points", by="player", points=agg.sum("score")))

    A result is emitted for every `place` in the ranking whose key or values have changed; it replaces the one
    that was emitted for the place before. Equal values have the same `rank`; the greater key is in front. All
    keys are kept, in one frame. With `keep`, only so many of the best are: for any number of keys, where
    `order` is an `agg.max` of what only grows; `rows` are then those since a key was among them.
    """
    names = keys_of(by, RESULT_COLUMNS, "ranking.top", least=1)
    if count < 1:
        raise FlowError(f"the top {count} of all, expected at least 1")
    if order not in aggregates:
        raise FlowError(f"a ranking by {order!r}, which is none of its values", hint=f"add {order}=agg.…")
    if keep is not None:
        _check_keep(keep, count, order, aggregates[order])
    refuse_taken(aggregates, (*names, *RESULT_COLUMNS), "aggregate")
    ranks = Ranks(names, aggregates, 0, count, order, keep)
    return lambda rows: _ranked(rows, ranks)


def _check_keep(keep: int, count: int, order: str, aggregate: Aggregate) -> None:
    if keep < count:
        raise FlowError(f"a ranking keeps {keep} keys for {count} places", hint=f"keep {count} or more")
    if not isinstance(aggregate, Max):
        raise FlowError(
            f"a ranking keeps the best by {order}, which is {aggregate.description}",
            hint=f"use {order}=agg.max(…): what was forgotten of a key could not be added to",
        )


def _ranked(rows: DataFrame, ranks: Ranks) -> DataFrame:
    refuse_own(rows)
    refuse_keys(rows, ranks.by)
    # State with timers wants a watermark, which never moves here: there is nothing to wait for.
    timed = rows.withColumn(TIME, F.timestamp_micros(F.lit(0))).withWatermark(TIME, "0 seconds")
    inputs = inputs_of(rows, ranks.aggregates)
    columns = timed.select(*map(quoted, ranks.by), *order_of(timed), *inputs)
    own = [
        StructField(PLACE, IntegerType()),
        StructField(RANK, IntegerType()),
        StructField(ROWS, LongType()),
    ]
    values = fields_of(rows, ranks.aggregates)
    schema = StructType([*(columns.schema[name] for name in ranks.by), *own, *values])
    state = _state(rows, columns, ranks)
    return vectorised(columns, RankStep(ranks), schema, state, fold=RankFold(ranks))


def _state(rows: DataFrame, columns: DataFrame, ranks: Ranks) -> StateDescription:
    """All keys are in one bucket, and are columns like others."""
    kinds = ", ".join(f"{name} {each.description}" for name, each in ranks.aggregates.items())
    by = ", ".join(original(rows.schema, name) for name in ranks.by)
    return StateDescription.of(
        f"ranking of {by} with {original_kinds(rows, ranks.aggregates)}",
        columns_of(columns.schema, *ranks.by, *ranks.aggregates),
        (),
        1,
        title=f"ranking of {', '.join(ranks.by)} with {kinds}",
    )
