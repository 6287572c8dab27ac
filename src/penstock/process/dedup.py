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
from penstock.process.source import PLACE
from penstock.process.vectorised import Stepped, vectorised
from penstock.process.windows.late import Late
from penstock.process.windows.shape import MICROSECOND
from penstock.process.windows.watermark import Watermark, as_watermark

_TIME, _EVENT, _US = "_time", "_event", "_us"
_ORDER = ("_partition", "_offset", _US)
_ROW = "_row"


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
        unsure = pl.col(_US).is_null() | (pl.col(_US) + self.within <= now)
        late, waiting = rows.filter(unsure), rows.filter(~unsure).sort(*_ORDER).with_row_index(_ROW)
        seen = rows.clear().select(*self.by, _US) if kept is None else kept
        passed = [waiting.clear()]
        while waiting.height:
            waiting = self._new(waiting, seen)
            first = waiting.unique(subset=self.by, keep="first", maintain_order=True)
            passed.append(first)
            seen = pl.concat([seen, first.select(*self.by, _US)])
            waiting = waiting.join(first.select(_ROW), on=_ROW, how="anti")
        seen = seen.filter(pl.col(_US) + 2 * self.within > now)
        told = pl.concat(passed).sort(_ROW).select(_EVENT, pl.lit(None, pl.String).alias(OUTLET))
        sent = late.select(_EVENT, pl.lit(self.outlet, pl.String).alias(OUTLET))
        dropped = 0 if self.outlet else late.height
        rows = pl.concat([told, sent]) if self.outlet else told
        return Stepped(seen, rows, self._alarm(seen), dropped)

    def _new(self, waiting: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
        near = waiting.join(seen.rename({_US: "_seen"}), on=self.by, nulls_equal=True)
        repeated = near.filter((pl.col(_US) - pl.col("_seen")).abs() < self.within)
        return waiting.join(repeated.select(_ROW), on=_ROW, how="anti")

    def _alarm(self, seen: pl.DataFrame) -> int | None:
        found = seen.select(pl.col(_US).min()).item()
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
    names, limit, policy = (
        (by,) if isinstance(by, str) else tuple(by),
        as_watermark(watermark),
        late or Late(),
    )
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
    place = [F.col(PLACE)[part] if PLACE in rows.columns else F.lit(0) for part in ("partition", "offset")]
    taken = limit.marked(rows, F.col(time), _TIME).select(
        *by,
        F.unix_micros(_TIME).alias(_US),
        place[0].cast("int").alias("_partition"),
        place[1].cast("long").alias("_offset"),
        F.struct(*rows.columns).alias(_EVENT),
    )
    schema = StructType([taken.schema[_EVENT], StructField(OUTLET, StringType())])
    step = FirstStep(by, within // MICROSECOND, late.outlet)
    found = vectorised(taken, by, step, schema, buckets=buckets, state="duplicates")
    return found.select(f"{_EVENT}.*", *([OUTLET] if late.outlet else []))
