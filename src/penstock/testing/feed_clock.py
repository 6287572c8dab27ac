"""The clock of a feed: the watermark of a flow, without a broker, and moved by hand."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, Protocol

from pyspark.sql import DataFrame

from penstock.durations import duration
from penstock.pipeline.tracker import Demand, WatermarkTracker
from penstock.process.columns.names import SOURCE
from penstock.process.time.source_columns import SourceColumn, columns_of
from penstock.process.time.watermark import TimeLine, Watermark

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_Rows = Sequence[Mapping[str, Any]]


class Stream(Protocol):
    """A stream that takes rows by hand."""

    frame: DataFrame

    def add(self, rows: Sequence[Any]) -> object: ...


class FeedClock:
    """Moves the watermark after each batch as a flow's clock would; no time passes, so nobody is quiet."""

    def __init__(self, ticks: Stream) -> None:
        self.columns: dict[int, SourceColumn] = {}
        self._ticks = ticks
        self._tracker = WatermarkTracker()
        self._emitted: int | None = None

    def source(self, name: str, rows: DataFrame) -> DataFrame:
        """Remember what a source's columns are."""
        self.columns |= columns_of(rows, name)
        return rows

    def ticks(self, watermark: Watermark, lines: frozenset[TimeLine]) -> DataFrame:
        """Return the stream that moves a watermark."""
        delay = duration(watermark.delay, zero=True) // _MICROSECOND
        self._tracker.demands += tuple(Demand(line, delay) for line in lines)
        return self._ticks.frame

    def move(self, to: datetime) -> None:
        """Move every watermark to a time."""
        self._ticks.add([(to, True)])

    def learn(self, sent: Mapping[str, _Rows]) -> bool:
        """Learn the times of a batch; True if a watermark moves by them."""
        for line in {demand.line for demand in self._tracker.demands}:
            self._tracker.learn({line: _maxima(line, sent.get(line.source, ()))}, 0.0)
        reached = self._tracker.advance(0.0)
        if reached is None or reached == self._emitted:
            return False
        self._emitted = reached
        self._ticks.add([(_EPOCH + reached * _MICROSECOND, False)])
        return True


def _maxima(line: TimeLine, rows: _Rows) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        writer, time = str(_value(row, f"{SOURCE}.partition") or 0), _micros(row.get(line.column))
        if time is not None and not _is_ahead(line, row, time):
            found[writer] = max(time, found.get(writer, time))
    return found


def _is_ahead(line: TimeLine, row: Mapping[str, Any], time: int) -> bool:
    arrived = None if line.future is None else _micros(_value(row, line.arrived))
    return arrived is not None and time > arrived + (line.future or 0)


def _value(row: Mapping[str, Any], path: str) -> Any:
    return reduce(_inner, path.split("."), row)


def _inner(held: Any, name: str) -> Any:
    return held.get(name) if isinstance(held, Mapping) else getattr(held, name, None)


def _micros(time: datetime | None) -> int | None:
    """A time without a zone is one of this machine's, as Spark takes it."""
    return None if time is None else (time.astimezone(UTC) - _EPOCH) // _MICROSECOND
