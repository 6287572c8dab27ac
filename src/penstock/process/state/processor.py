"""Steps in Spark: what a worker runs for the buckets that it is given.

It is all that a worker imports to begin with, so that nothing of how flows are planned is in here.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from penstock.process.columns.lineage import Lineage
from penstock.process.state.frames import pack, unpack
from penstock.process.state.migration import migrated
from penstock.process.state.step import BEFORE, FOREVER, Step, Stepped

STATE = "kept binary, last long, dropped long, missed long"  # of a bucket: frame, last watermark, two counts


class Steps(StatefulProcessor):
    """Runs a step in Spark: a bucket's state is one value, and it has one timer."""

    def __init__(self, step: Step, empty: pl.DataFrame, name: str, lineage: Lineage) -> None:
        self._step = step
        self._empty = empty
        self._name = name
        self._lineage = lineage
        self._nothing = step(None, empty, BEFORE, BEFORE).kept  # state of today's shape

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState("bucket", STATE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: ARG002
        frames = [unpack(packed) for frame in rows for packed in frame["rows"]]
        now = timerValues.getCurrentWatermarkInMs()
        if now == -1:
            first = self._step(None, pl.concat(frames), BEFORE, BEFORE)
            last = self._step(first.kept, self._empty, BEFORE, FOREVER)
            yield from written(self._name, first.rows, last.rows)
        else:
            yield from written(self._name, self._stepped(pl.concat(frames), now).rows)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: ARG002
        done = self._stepped(self._empty, timerValues.getCurrentWatermarkInMs())
        yield from written(self._name, done.rows)

    def close(self) -> None:
        pass

    def _stepped(self, rows: pl.DataFrame, watermark: int) -> Stepped:
        now = 1000 * watermark if watermark else BEFORE
        kept, last, dropped, missed = self._state.get() or (None, BEFORE, 0, 0)
        known = None if kept is None else migrated(unpack(kept), self._nothing, self._lineage)
        done = self._step(known, rows, last, now)
        self._state.update((pack(done.kept), now, dropped + done.dropped, missed + done.missed))
        set_timer(self._handle, done.timer)
        return done


def written(name: str, *frames: pl.DataFrame) -> Iterator[Any]:
    """Yield frames as a processor puts them out."""
    import pandas as pd  # type: ignore[import-untyped]  # here: it takes half a second, in workers only

    found = [pack(frame) for frame in frames if frame.height]
    if found:
        yield pd.DataFrame({name: found})


def set_timer(handle: Any, timer: int | None) -> None:
    """Let a bucket be woken at one time, in microseconds, and at no other."""
    wanted = {-(-timer // 1000)} if timer is not None else set()
    there = set(handle.listTimers())
    for time in there - wanted:
        handle.deleteTimer(time)
    for time in wanted - there:
        handle.registerTimer(time)
