"""Steps as work on buckets: a bucket's state is one frame, and it has one timer."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from penstock.process.columns.lineage import Lineage
from penstock.process.state.frames import pack, packed_rows, unpack
from penstock.process.state.migration import migrated
from penstock.process.state.processor import set_timer
from penstock.process.state.step import BEFORE, FOREVER, Step, Stepped

_BUCKET = "bucket"


class Steps:
    """Calls a step with rows, the state of their bucket and the watermark."""

    values: ClassVar = {_BUCKET: "kept binary, last long, dropped long, missed long"}
    maps: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __init__(self, step: Step, empty: pl.DataFrame, lineage: Lineage) -> None:
        self._step = step
        self._empty = empty
        self._lineage = lineage
        self._nothing = step(None, empty, BEFORE, BEFORE).kept  # state of today's shape

    def open(self, handle: StatefulProcessorHandle, states: Mapping[str, Any]) -> None:
        self._handle = handle
        self._state = states[_BUCKET]

    def take(self, bucket: int, rows: Sequence[bytes], watermark: int) -> list[bytes]:  # noqa: ARG002
        taken = pl.concat([unpack(packed) for packed in rows])
        if watermark != -1:
            return packed_rows(self._stepped(taken, watermark).rows)
        first = self._step(None, taken, BEFORE, BEFORE)
        last = self._step(first.kept, self._empty, BEFORE, FOREVER)
        return packed_rows(first.rows, last.rows)

    def wake(self, bucket: int, watermark: int) -> list[bytes]:  # noqa: ARG002
        return packed_rows(self._stepped(self._empty, watermark).rows)

    def _stepped(self, rows: pl.DataFrame, watermark: int) -> Stepped:
        now = 1000 * watermark if watermark else BEFORE
        kept, last, dropped, missed = self._state.get() or (None, BEFORE, 0, 0)
        known = None if kept is None else migrated(unpack(kept), self._nothing, self._lineage)
        done = self._step(known, rows, last, now)
        self._state.update((pack(done.kept), now, dropped + done.dropped, missed + done.missed))
        set_timer(self._handle, done.timer)
        return done
