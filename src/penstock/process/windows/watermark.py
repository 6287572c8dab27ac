"""The watermark: how long to wait for events that are on their way."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.durations import duration
from penstock.errors import FlowError
from penstock.process.windows.order import TIME

_TICK = "_tick"
_NEVER = -(2**62)  # microseconds
Clock = Callable[["Watermark"], DataFrame | None]
_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextmanager
def ticking(clock: Clock) -> Iterator[None]:
    """While plans are made here, let streams of times (in their column `time`) move watermarks, too.

    The clock is asked for the stream that is to move a watermark, and may have none for it.
    """
    before = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(before)


@dataclass(frozen=True)
class Watermark:
    """How far the end of what has been seen is behind the latest event.

    >>> Watermark("30 seconds")
    Watermark(delay='30 seconds', idle=None, future=None, sources=None, arrived='_source.written')

    By itself it is a guess: `delay` behind the latest event of all. With `sources`, as in
    `sources=("partition", [0, 1, 2, 3])`, it is `delay` behind the source that is furthest back, and stands
    still until every one of them has been heard of; Spark then reads the stream once for each. Events dated
    more than `future` after the time at which they were written to the log (`arrived`) do not move it.

    It stands still while nothing comes. With `idle`, a running flow that has heard nothing for so long lets
    it follow the clock, as far behind: the last windows of a quiet stream close, and what is older is late.
    """

    delay: str | timedelta
    idle: str | timedelta | None = None
    future: str | timedelta | None = None
    sources: tuple[str, Sequence[Any]] | None = None
    arrived: str = "_source.written"

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
        times = self._times(rows)
        if times is None:
            return self._watched(timed, F.lit(False))
        delay = duration(self.delay, zero=True) // timedelta(microseconds=1)
        late = F.timestamp_micros(F.unix_micros("time") + delay)
        ticks = times.select(late.alias(TIME), F.lit(True).alias(_TICK))
        watched = self._watched(timed.unionByName(ticks, allowMissingColumns=True), F.col(_TICK))
        # The time is asked for so that Spark does not take the ticks out before the watermark has seen them.
        never = F.unix_micros(TIME) < F.lit(_NEVER)
        return watched.where(F.col(_TICK).isNull() | never).drop(_TICK)

    def _times(self, rows: DataFrame) -> DataFrame | None:
        clock = _clock.get()
        return clock(self) if clock is not None and rows.isStreaming else None

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
        bound = duration(self.future) // timedelta(microseconds=1)
        return F.coalesce(F.unix_micros(time) > F.unix_micros(F.col(self.arrived)) + bound, F.lit(False))

    @property
    def _delay(self) -> str:
        return f"{duration(self.delay, zero=True) // timedelta(milliseconds=1)} milliseconds"


def as_watermark(value: "Watermark | str | timedelta") -> Watermark:
    """Return a watermark; a duration alone is its delay."""
    return value if isinstance(value, Watermark) else Watermark(value)
