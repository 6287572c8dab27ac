"""Windows as the user describes them, checked when they are described."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.durations import duration
from penstock.errors import FlowError
from penstock.process.columns.names import END, START
from penstock.process.columns.naming import (
    checked_buckets,
    event_time,
    keys_of,
    refuse_keys,
    refuse_own,
    refuse_taken,
)  # fmt: skip
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.process.time.late import Late
from penstock.process.time.order import since_epoch
from penstock.process.time.watermark import Watermark, as_watermark
from penstock.process.windows import native, stateful
from penstock.process.windows.aggregates import Aggregate
from penstock.process.windows.kept import KIND, ON_TIME
from penstock.process.windows.shape import Fixed, Session, Shape, Sliding

Emit = Literal["final", "early"]
Transform = Callable[[DataFrame], DataFrame]
PROCESSING_TIME = "processing time"
"""As `time=`: windows of the time at which Spark takes an event in."""
_KINDS = {"final": ON_TIME, "early": "early"}


@dataclass(frozen=True)
class Windowing:
    """Windows over an event-time column, by key; `agg` says what is computed in them.

    Spark's own aggregates, `agg(F.count("*").alias("views"))`, run natively: `emit="final"` gives each window
    once, when it is over, and needs the flow's output "append"; `emit="early"` gives it whenever it changes.
    What is late is dropped by Spark; an event dated before 1970, where a stream's watermark begins, stops the
    flow. Declared ones, `agg(views=agg.count())`, run on vectorised state, with
    the whole late policy.
    """

    shape: Shape
    time: str
    by: tuple[str, ...]
    watermark: Watermark
    late: Late | None
    emit: Emit
    buckets: int

    def __post_init__(self) -> None:
        if self.emit not in get_args(Emit):
            raise FlowError(f"emit is {self.emit!r}", hint="use 'final' or 'early'")
        if self.emit == "early" and self.late is not None:
            raise FlowError(
                "early results have no late policy: each is replaced by the next",
                hint="leave `late` out, or emit='final'",
            )

    def agg(self, *columns: Column, **aggregates: Aggregate) -> Transform:
        """Return what `DataFrame.transform` takes: Spark's aggregates or declared ones, not both."""
        if bool(columns) == bool(aggregates):
            raise FlowError("windows are to compute either Spark's aggregates or declared ones", hint=_EITHER)
        if columns:
            shape, kind = self._native_shape(), _KINDS[self.emit]
            return lambda rows: native.windowed(self._native(rows), shape, self.by, columns, kind)
        self._check_declared(aggregates)
        return lambda rows: self._stateful(rows, aggregates)

    def top(self, count: int, order: str, *columns: Column) -> Transform:
        """Return the keys with the greatest value in each window, when it is over: the hashtags of the hour.

            hours = windows.tumbling("1 hour", time="at", by="tag", watermark="1 minute")
            tags.transform(hours.top(10, "uses", F.count("*").alias("uses")))

        Equal values have the same `rank`; where not all of them fit, the greater keys do.
        """
        if count < 1:
            raise FlowError(f"the top {count} of a window, expected at least 1")
        if self.emit == "early":
            raise FlowError("a ranking is emitted when its window is over", hint="use emit='final'")
        shape, kind = self._native_shape(), _KINDS[self.emit]
        return lambda rows: native.ranked(
            self._native(rows), shape, self.by, columns, kind, count=count, order=order
        )

    def _native_shape(self) -> Fixed | Session:
        if isinstance(self.shape, Sliding):
            raise FlowError("Spark's own aggregates have no window for each event", hint=_EITHER)
        if self.late not in (None, Late.drop()):
            raise FlowError(
                "Spark's own aggregates can't be corrected: what is late is dropped", hint=_EITHER
            )
        if self.watermark.future is not None:
            raise FlowError("Spark's own aggregates have no place for events dated ahead", hint=_EITHER)
        return self.shape

    def _check_declared(self, aggregates: dict[str, Aggregate]) -> None:
        wrong = {name: each for name, each in aggregates.items() if not isinstance(each, Aggregate)}
        if wrong:
            name, seen = next(iter(wrong.items()))
            raise FlowError(f"{name} is {seen!r}, expected one of agg's", hint=_EITHER)
        if self.emit == "early":
            raise FlowError(
                "declared aggregates are emitted when a window is over", hint="use Spark's own for 'early'"
            )
        own = (*stateful.RESULT_COLUMNS, *([SIDE_OUTPUT] if self.late and self.late.side_output else []))
        refuse_taken(self.by, own, "key")
        refuse_taken(aggregates, (*self.by, *own), "aggregate")

    def _stateful(self, rows: DataFrame, aggregates: dict[str, Aggregate]) -> DataFrame:
        late = self.late or Late.drop()
        own = {*stateful.RESULT_COLUMNS, *aggregates} | ({SIDE_OUTPUT} if late.side_output else set())
        clash = own & set(rows.columns)
        if clash and (late.side_output or isinstance(self.shape, Sliding)):
            raise FlowError(
                f"events have a column {', '.join(sorted(clash))}, and so have the results beside them",
                hint="rename one of them before the windows",
            )
        return stateful.windowed(
            self._timed(rows, self._time(rows)),
            self.shape,
            self.by,
            aggregates,
            late=late,
            buckets=self.buckets,
        )

    def _native(self, rows: DataFrame) -> DataFrame:
        """Rows for Spark's own windows, which would leave out without a word what is dated before 1970."""
        time = self._time(rows)
        return self._timed(rows, since_epoch(time) if rows.isStreaming else time)

    def _timed(self, rows: DataFrame, time: Column) -> DataFrame:
        refuse_own(rows)
        refuse_keys(rows, self.by)
        return self.watermark.marked(rows, time)

    def _time(self, rows: DataFrame) -> Column:
        return F.current_timestamp() if self.time == PROCESSING_TIME else event_time(rows, self.time)


_EITHER = "agg(F.count('*').alias('n')) is native, agg(n=agg.count()) has late events"


def tumbling(
    size: str | timedelta,
    *,
    time: str,
    watermark: Watermark | str | timedelta,
    by: str | tuple[str, ...] = (),
    late: Late | None = None,
    emit: Emit = "final",
    buckets: int = 16,
) -> Windowing:
    """Windows that touch: each event is in one of them."""
    return hopping(
        size, every=size, time=time, watermark=watermark, by=by, late=late, emit=emit, buckets=buckets
    )


def hopping(
    size: str | timedelta,
    *,
    every: str | timedelta,
    time: str,
    watermark: Watermark | str | timedelta,
    by: str | tuple[str, ...] = (),
    late: Late | None = None,
    emit: Emit = "final",
    buckets: int = 16,
) -> Windowing:
    """Windows of one size that overlap: one begins `every` so often."""
    shape = Fixed(duration(size), duration(every))
    return _windowing(shape, time, by, watermark, late, emit, buckets)


def session(
    gap: str | timedelta,
    *,
    time: str,
    watermark: Watermark | str | timedelta,
    by: str | tuple[str, ...] = (),
    late: Late | None = None,
    emit: Emit = "final",
    buckets: int = 16,
) -> Windowing:
    """Windows that last until nothing has come for the length of the gap."""
    return _windowing(Session(duration(gap)), time, by, watermark, late, emit, buckets)


def sliding(
    size: str | timedelta,
    *,
    time: str,
    watermark: Watermark | str | timedelta,
    by: str | tuple[str, ...] = (),
    late: Late | None = None,
    buckets: int = 16,
) -> Windowing:
    """A window for each event, of what is within the size before it and of itself, beside its own columns."""
    return _windowing(Sliding(duration(size)), time, by, watermark, late, "final", buckets)


def _windowing(
    shape: Shape,
    time: str,
    by: str | tuple[str, ...],
    limit: Watermark | str | timedelta,
    late: Late | None,
    emit: Emit,
    buckets: int,
) -> Windowing:
    names = keys_of(by, (START, END, KIND), "a window")
    checked_buckets(buckets)
    return Windowing(shape, time, names, as_watermark(limit), late, emit, buckets)
