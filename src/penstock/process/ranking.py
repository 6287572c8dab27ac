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
from penstock.process.state.vectorised import columns_of, vectorised
from penstock.process.time.order import order_of
from penstock.process.windows.aggregates import Aggregate
from penstock.process.windows.kept import ROWS, Kept, Taken
from penstock.process.windows.native import RANK
from penstock.process.windows.stateful import fields_of, inputs_of, original_kinds
from penstock.process.windows.steps import WindowStep

PLACE = "place"
RESULT_COLUMNS = (PLACE, RANK, ROWS)  # what every result has besides its key and its values


@dataclass(frozen=True)
class Ranks(Kept):
    """All keys with what is counted of them. Pure; no Spark."""

    count: int
    order: str

    def take(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Taken:  # noqa: ARG002
        new = self.started(rows)
        old = new.clear() if kept is None else kept
        keys = self.merged(pl.concat([old, new]))
        before, after = self._top(old), self._top(keys)
        changed = after.join(before, on=after.columns, how="anti", nulls_equal=True)
        return Taken(keys, changed, rows.clear(), None)

    def finished(self, results: pl.DataFrame) -> pl.DataFrame:
        """The values were needed for the order already."""
        return results

    def _top(self, keys: pl.DataFrame) -> pl.DataFrame:
        values = [aggregate.finish(name).alias(name) for name, aggregate in self.aggregates.items()]
        found = keys.select(*self.by, ROWS, *values).drop_nulls(self.order)
        best = found.sort(self.order, *self.by, descending=True, nulls_last=True).head(self.count)
        rank = pl.col(self.order).rank("min", descending=True).cast(pl.Int32).alias(RANK)
        places = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).alias(PLACE)
        return best.select(*self.by, places, rank, ROWS, *self.aggregates)


def top(
    count: int, order: str, *, by: str | tuple[str, ...], **aggregates: Aggregate
) -> Callable[[DataFrame], DataFrame]:
    """Return the keys in which a value is greatest, over all events so far.

        games.transform(ranking.top(10, "points", by="player", points=agg.sum("score")))

    A result is emitted for every `place` in the ranking whose key or values have changed; it replaces the one
    that was emitted for the place before. Equal values have the same `rank`; the greater key is in front. All
    keys are kept, in one frame.
    """
    names = keys_of(by, RESULT_COLUMNS, "ranking.top", least=1)
    if count < 1:
        raise FlowError(f"the top {count} of all, expected at least 1")
    if order not in aggregates:
        raise FlowError(f"a ranking by {order!r}, which is none of its values", hint=f"add {order}=agg.…")
    refuse_taken(aggregates, (*names, *RESULT_COLUMNS), "aggregate")
    ranks = Ranks(names, aggregates, 0, count, order)
    return lambda rows: _ranked(rows, ranks)


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
    return vectorised(columns, WindowStep(ranks, None), schema, _state(rows, columns, ranks))


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
