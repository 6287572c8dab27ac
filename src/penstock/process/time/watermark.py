"""The watermark: how long to wait for events that are on their way."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from penstock.durations import MICROSECOND, duration
from penstock.errors import FlowError
from penstock.process.columns.names import TIME
from penstock.process.time.source_columns import Columns, traced

_TICK = "_tick"
_NEVER = -(2**62)  # microseconds
_WRITTEN = "_source.written"


@dataclass(frozen=True)
class TimeLine:
    """Event times of a source as a watermark looks at them, those dated `future` microseconds ahead aside."""

    source: str
    column: str
    future: int | None = None
    arrived: str = _WRITTEN


class Clock(Protocol):
    """Moves watermarks by ticks: a stream with the columns `time` and `clock`, which is true where the time
    does not depend on events."""

    @property
    def columns(self) -> Columns:
        """The columns of the sources whose times it knows."""

    def source(self, name: str, rows: DataFrame) -> DataFrame:
        """Return what a flow reads under a name, so that its times become known."""

    def ticks(self, watermark: "Watermark", lines: frozenset[TimeLine]) -> DataFrame | None:
        """Return the ticks for a watermark, if it has any; without lines, it follows Spark's own."""


_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextmanager
def ticking(clock: Clock) -> Iterator[None]:
    """While plans are made here, let a clock move watermarks."""
    before = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(before)


def as_source(name: str, rows: DataFrame) -> DataFrame:
    """Return what a flow reads under a name; a clock gets to know its times."""
    clock = _clock.get()
    return rows if clock is None or not rows.isStreaming else clock.source(name, rows)


@dataclass(frozen=True)
class Watermark:
    """How far the end of what has been seen is behind the latest event.

    >>> Watermark("30 seconds")
    Watermark(delay='30 seconds', idle=None, future=None, sources=None, arrived='_source.written')

    In a flow it is `delay` behind the writer that is furthest back: a writer is a partition of the topic
    and, in topics that flows write, a partition that the flow has read. So an event is late only if an
    earlier one of its own writer is newer by more than the delay. A writer that has been quiet for a minute,
    or for `idle`, while others go on is not waited for. Events dated more than `future` after the time at
    which they were written to the log (`arrived`) do not move the watermark.

    On other DataFrames, and where a flow computes the time itself, it is Spark's own: `delay` behind the
    latest event of all. With `sources`, as in `sources=("partition", [0, 1, 2, 3])`, that is `delay` behind
    the source that is furthest back, and stands still until every one of them has been heard of; Spark then
    reads the stream once for each.

    It stands still while nothing comes. With `idle`, a running flow that has heard nothing for so long since
    its last event lets it follow the clock, as far behind: the last windows of a quiet stream close, and what
    is older is late.
    """

    delay: str | timedelta
    idle: str | timedelta | None = None
    future: str | timedelta | None = None
    sources: tuple[str, Sequence[Any]] | None = None
    arrived: str = _WRITTEN

    def __post_init__(self) -> None:
        duration(self.delay, zero=True)
        for length in (self.idle, self.future):
            if length is not None:
                duration(length)
        if self.sources is not None and not self.sources[1]:
            raise FlowError("a watermark over sources has none", hint='write sources=("sensor", ["a", "b"])')

    def marked(self, rows: DataFrame, time: Column) -> DataFrame:
        """Return rows with their event time as a column that Spark makes the watermark of."""
        timed = rows.withColumn(TIME, F.when(~self._ahead(time), time))
        clock = _clock.get() if rows.isStreaming else None
        lines = frozenset[TimeLine]() if clock is None else self._lines(rows, time, clock)
        ticks = None if clock is None else clock.ticks(self, lines)
        if ticks is None:
            return self._watched(timed, F.lit(False))
        return _behind(ticks, timed) if lines else self._among(ticks.where("clock"), timed)

    def _lines(self, rows: DataFrame, time: Column, clock: Clock) -> frozenset[TimeLine]:
        """The times at the sources that these are; none if that can't be said."""
        found = traced(rows, time, clock.columns) if self.sources is None else None
        if found is None or self.future is None:
            return frozenset(TimeLine(each.source, each.column) for each in found or ())
        future = duration(self.future) // MICROSECOND
        if self.arrived == _WRITTEN:
            return frozenset(TimeLine(each.source, each.column, future) for each in found)
        arrived = traced(rows, F.col(self.arrived), clock.columns) or frozenset()
        at = {each.source: each.column for each in arrived}
        if {*at} != {each.source for each in found} or len(at) < len(arrived):
            return frozenset()
        return frozenset(TimeLine(each.source, each.column, future, at[each.source]) for each in found)

    def _among(self, ticks: DataFrame, timed: DataFrame) -> DataFrame:
        """Let ticks move Spark's own watermark, as events would that are later by the delay."""
        delay = duration(self.delay, zero=True) // MICROSECOND
        late = F.timestamp_micros(F.unix_micros("time") + delay)
        own = ticks.select(late.alias(TIME), F.lit(True).alias(_TICK))
        united = timed.unionByName(own, allowMissingColumns=True)
        return _without_ticks(self._watched(united, F.col(_TICK)))

    def _watched(self, timed: DataFrame, tick: Column) -> DataFrame:
        """Spark has one watermark for each branch of a union, and takes the least."""
        if self.sources is None:
            return timed.withWatermark(TIME, self._delay)
        source, values = self.sources
        others = timed.where(~F.coalesce(F.col(source).isin(*values), F.lit(False)))
        owned = [F.coalesce((F.col(source) == F.lit(value)) | tick, F.lit(False)) for value in values]
        marked = [timed.where(own).withWatermark(TIME, self._delay) for own in owned]
        return reduce(DataFrame.union, [*marked, others])  # a union takes the mark from its first branch

    def _ahead(self, time: Column) -> Column:
        """Whether an event is dated too far ahead of its arrival."""
        if self.future is None:
            return F.lit(False)
        bound = duration(self.future) // MICROSECOND
        return F.coalesce(F.unix_micros(time) > F.unix_micros(F.col(self.arrived)) + bound, F.lit(False))

    @property
    def _delay(self) -> str:
        return f"{duration(self.delay, zero=True) // timedelta(milliseconds=1)} milliseconds"


def _behind(ticks: DataFrame, timed: DataFrame) -> DataFrame:
    """Let ticks alone be the watermark: a union takes the mark from its first branch, and metadata, too."""
    own = ticks.select(F.col("time").alias(TIME), F.lit(True).alias(_TICK)).withWatermark(TIME, "0 seconds")
    others = [
        _missing(field).alias(field.name, metadata=field.metadata)
        for field in timed.schema
        if field.name != TIME
    ]
    united = own.select(*own.columns, *others).unionByName(timed, allowMissingColumns=True)
    return _without_ticks(united).select(*(f"`{name}`" for name in timed.columns))


def _missing(field: StructField) -> Column:
    """Null, of which Spark does not know that it always is: a join would look for no other value then."""
    place = (F.unix_micros(TIME) % 1).cast("int")
    return F.get(F.array(F.lit(None).cast(field.dataType)), place)


def _without_ticks(rows: DataFrame) -> DataFrame:
    """The time is asked for so that Spark does not take ticks out before the watermark has seen them."""
    never = F.unix_micros(TIME) < F.lit(_NEVER)
    return rows.where(F.col(_TICK).isNull() | never).drop(_TICK)


def as_watermark(value: "Watermark | str | timedelta") -> Watermark:
    """Return a watermark; a duration alone is its delay."""
    return value if isinstance(value, Watermark) else Watermark(value)
