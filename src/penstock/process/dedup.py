"""Duplicates left out: of events of a key that are close in time, the first in the log goes through."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.durations import duration
from penstock.errors import FlowError
from penstock.process.route import OUTLET
from penstock.process.vectorised import Stepped, vectorised
from penstock.process.windows.kept import EVENT
from penstock.process.windows.late import Late
from penstock.process.windows.order import OFFSET, PARTITION, US, order_of
from penstock.process.windows.shape import MICROSECOND
from penstock.process.windows.watermark import Watermark, as_watermark

_ROW = "_row"
_LOG = (PARTITION, OFFSET, US)  # the order of the log


@dataclass(frozen=True)
class FirstStep:
    """Lets through what is no duplicate of what was let through before.

    What was let through is remembered for twice the time, so that every event that is less than that time
    late is judged rightly; one that is later can't be.
    """

    by: tuple[str, ...]
    within: int
    outlet: str | None

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped:  # noqa: ARG002
        unsure = pl.col(US).is_null() | (pl.col(US) + self.within <= now)
        late, waiting = rows.filter(unsure), rows.filter(~unsure).sort(*_LOG).with_row_index(_ROW)
        seen = rows.clear().select(*self.by, US) if kept is None else kept
        passed = [waiting.clear()]
        while waiting.height:
            waiting = self._new(waiting, seen)
            first = waiting.unique(subset=self.by, keep="first", maintain_order=True)
            passed.append(first)
            seen = pl.concat([seen, first.select(*self.by, US)])
            waiting = waiting.join(first.select(_ROW), on=_ROW, how="anti")
        seen = seen.filter(pl.col(US) + 2 * self.within > now)
        told = pl.concat(passed).sort(_ROW).select(EVENT, pl.lit(None, pl.String).alias(OUTLET))
        sent = late.select(EVENT, pl.lit(self.outlet, pl.String).alias(OUTLET))
        dropped = 0 if self.outlet else late.height
        rows = pl.concat([told, sent]) if self.outlet else told
        return Stepped(seen, rows, self._alarm(seen), dropped)

    def _new(self, waiting: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
        near = waiting.join(seen.rename({US: "_seen"}), on=self.by, nulls_equal=True)
        repeated = near.filter((pl.col(US) - pl.col("_seen")).abs() < self.within)
        return waiting.join(repeated.select(_ROW), on=_ROW, how="anti")

    def _alarm(self, seen: pl.DataFrame) -> int | None:
        found = seen.select(pl.col(US).min()).item()
        return None if found is None else int(found) + 2 * self.within


def first(
    by: str | tuple[str, ...],
    *,
    time: str,
    watermark: Watermark | str | timedelta,
    within: str | timedelta = "24 hours",
    late: Late | None = None,
    buckets: int = 16,
) -> Callable[[DataFrame], DataFrame]:
    """Let the first event of a key through at once, and leave out those that follow `within` so much time.

        orders.transform(dedup.first("order_id", time="at", within="24 hours", watermark="1 minute"))

    An event is a duplicate if one of its key was let through whose time is less than `within` away. One that
    is later than the watermark by more than `within` can't be judged: `late` says what becomes of it.
    """
    names = (by,) if isinstance(by, str) else tuple(by)
    limit, policy = as_watermark(watermark), late or Late.drop()
    if policy.within:
        raise FlowError("a duplicate can't be corrected later", hint="use Late.drop() or Late.send(topic)")
    return lambda rows: _first(rows, names, time, limit, duration(within), policy, buckets)


def _first(
    rows: DataFrame,
    by: tuple[str, ...],
    time: str,
    limit: Watermark,
    within: timedelta,
    late: Late,
    buckets: int,
) -> DataFrame:
    timed = limit.marked(rows, F.col(time))
    taken = timed.select(*by, *order_of(timed), F.struct(*rows.columns).alias(EVENT))
    schema = StructType([taken.schema[EVENT], StructField(OUTLET, StringType())])
    step = FirstStep(by, within // MICROSECOND, late.outlet)
    found = vectorised(taken, by, step, schema, buckets=buckets, state="duplicates")
    return found.select(f"{EVENT}.*", *([OUTLET] if late.outlet else []))
