"""Duplicates left out: of events of a key that are close in time, the first in the log goes through."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.durations import MICROSECOND, duration
from penstock.errors import FlowError
from penstock.process.columns.names import OFFSET, PARTITION, US
from penstock.process.columns.naming import (
    checked_buckets,
    event_time,
    keys_of,
    quoted,
    refuse_keys,
    refuse_own,
)  # fmt: skip
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.process.state.description import StateDescription
from penstock.process.state.step import Stepped
from penstock.process.state.vectorised import columns_of, vectorised
from penstock.process.time.late import Late
from penstock.process.time.order import order_of
from penstock.process.time.watermark import Watermark, as_watermark
from penstock.process.windows.kept import EVENT

__all__ = ["first"]

_ROW, _KEY, _SEEN = "_row", "_key", "_seen"
_LOG = (PARTITION, OFFSET, US)  # the order of the log


@dataclass(frozen=True)
class FirstStep:
    """Lets through what is no duplicate of what was let through before.

    What was let through is remembered for twice the time, so that every event that is less than that time
    late is judged rightly; one that is later can't be.
    """

    by: tuple[str, ...]
    within: int
    side_output: str | None

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped:  # noqa: ARG002
        unsure = pl.col(US).is_null() | (pl.col(US) + self.within <= now)
        late, judged = rows.filter(unsure), rows.filter(~unsure)
        seen = rows.clear().select(*self.by, US) if kept is None else kept
        passed = self._passed(self._unlike(judged, seen))
        seen = pl.concat([seen, passed.select(*self.by, US)]).filter(pl.col(US) + 2 * self.within > now)
        results = passed.select(EVENT, pl.lit(None, pl.String).alias(SIDE_OUTPUT))
        sent = late.select(EVENT, pl.lit(self.side_output, pl.String).alias(SIDE_OUTPUT))
        if self.side_output:
            return Stepped(seen, pl.concat([results, sent]), self._timer(seen))
        return Stepped(seen, results, self._timer(seen), dropped=late.height)

    def _unlike(self, rows: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
        """Rows, with a number for their key, that are near nothing of it that was let through before."""
        keys = rows.select(self.by).unique().with_row_index(_KEY)
        numbered = rows.join(keys, on=self.by, nulls_equal=True).sort(US)
        known = seen.with_columns(pl.col(US).alias(_SEEN)).join(keys, on=self.by, nulls_equal=True)
        known = known.select(_KEY, US, _SEEN).sort(US)
        nearest = numbered.join_asof(known, on=US, by=_KEY, strategy="nearest", check_sortedness=False)
        near = ((pl.col(US) - pl.col(_SEEN)).abs() < self.within).fill_null(False)
        return nearest.filter(~near).drop(_SEEN)

    def _passed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of the log's order that are near no other that passes; one that is alone of its key does."""
        rows = rows.sort(*_LOG)
        several = pl.len().over(_KEY) > 1
        rival = rows.with_row_index(_ROW).filter(several).select(_ROW, _KEY, US)
        left_out = _repeated(rival.rows(), self.within)
        return rows.filter(~pl.int_range(pl.len()).is_in(left_out)).drop(_KEY)

    def _timer(self, seen: pl.DataFrame) -> int | None:
        found = seen.select(pl.col(US).min()).item()
        return None if found is None else int(found) + 2 * self.within


def _repeated(rows: Iterable[tuple[int, int, int]], within: int) -> list[int]:
    """The numbers of rows (number, key, time) that are nearer than `within` to one before that passes.

    In a stretch of that length only one of a key can be: an event is compared with three of them at most.
    """
    repeated, passed = [], dict[tuple[int, int], int]()
    for number, key, time in rows:
        stretch = time // within
        near = (passed.get((key, stretch + step)) for step in (-1, 0, 1))
        if any(other is not None and abs(time - other) < within for other in near):
            repeated.append(number)
        else:
            passed[key, stretch] = time
    return repeated


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
    names, length = keys_of(by, (), "dedup.first", least=1), duration(within)
    limit, policy = as_watermark(watermark), late or Late.drop()
    checked_buckets(buckets)
    if policy.within:
        raise FlowError("a duplicate can't be corrected later", hint="use Late.drop() or Late.send(topic)")
    return lambda rows: _first(rows, names, time, limit, length, policy, buckets)


def _first(
    rows: DataFrame,
    by: tuple[str, ...],
    time: str,
    limit: Watermark,
    within: timedelta,
    late: Late,
    buckets: int,
) -> DataFrame:
    _check(rows, by, late)
    timed = limit.marked(rows, event_time(rows, time))
    event = F.struct(*map(quoted, rows.columns)).alias(EVENT)
    taken = timed.select(*map(quoted, by), *order_of(timed), event)
    schema = StructType([taken.schema[EVENT], StructField(SIDE_OUTPUT, StringType())])
    step = FirstStep(by, within // MICROSECOND, late.side_output)
    state = StateDescription.of("duplicates", columns_of(taken.schema, *by), by, buckets)
    found = vectorised(taken, step, schema, state)
    return found.select(f"{EVENT}.*", *([SIDE_OUTPUT] if late.side_output else []))


def _check(rows: DataFrame, by: tuple[str, ...], late: Late) -> None:
    refuse_own(rows)
    refuse_keys(rows, by)
    if late.side_output and SIDE_OUTPUT in rows.columns:
        hint = "rename it before, or leave `late` out"
        raise FlowError(f"events have a column {SIDE_OUTPUT!r}, which says where late ones go", hint=hint)
