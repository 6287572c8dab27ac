"""Buckets of keys in Spark: a step over the rows of each, and its runs in the state store."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
from pyspark import SparkFiles, TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from penstock.process.columns.lineage import Lineage
from penstock.process.state.bucket_step import BucketStep
from penstock.process.state.frames import packed_rows, unpack
from penstock.process.state.processor import set_timer
from penstock.process.state.run_store import Run, RunStore
from penstock.process.state.runs import first_to_merge, merged
from penstock.process.state.step import BEFORE, FOREVER

RUNS, _BUCKET = "runs", "bucket"


class Buckets:
    """Takes the rows of buckets, and wakes them when a key's timer or the life of state has come.

    Of a bucket it keeps its runs, and which they are, the last watermark, and when all were looked through.
    """

    values: ClassVar = {_BUCKET: "runs string, last long, swept long"}
    maps: ClassVar = {RUNS: ("number long", "packed binary")}

    def __init__(
        self, step: BucketStep, empty: pl.DataFrame, name: str, lineage: Lineage, *, streaming: bool
    ) -> None:
        self._step = step
        self._lineage = lineage
        self._empty = empty
        self._name = name
        self._streaming = streaming

    def open(self, handle: StatefulProcessorHandle, states: Mapping[str, Any]) -> None:
        self._handle = handle
        self._head, self._store = states[_BUCKET], states[RUNS]

    def take(self, bucket: int, rows: Sequence[bytes], watermark: int) -> list[bytes]:
        taken = pl.concat([unpack(packed) for packed in rows])
        if self._streaming:
            return packed_rows(self._stepped(bucket, taken, watermark))
        first = self._step([], taken, BEFORE, BEFORE)
        last = self._step([first.changed], self._empty, BEFORE, FOREVER)
        return packed_rows(first.rows, last.rows)

    def wake(self, bucket: int, watermark: int) -> list[bytes]:
        return packed_rows(self._stepped(bucket, self._empty, watermark))

    def _stepped(self, bucket: int, rows: pl.DataFrame, watermark: int) -> pl.DataFrame:
        listed, last, swept = self._head.get() or ("[]", BEFORE, None)
        now = self._step.clock(last, rows, 1000 * watermark if watermark > 0 else BEFORE)
        swept = now if swept is None else swept
        store = RunStore(_folder(self._name) / str(bucket), self._store, self._step.empty, self._lineage)
        runs = [Run(**each) for each in json.loads(listed)]
        frames = [store.read(run) for run in runs]
        done = self._step(frames, rows, last, now)
        sweeping = self._step.ttl is not None and now >= swept + self._step.ttl
        patience = 1.5 + bucket % 8 / 8  # buckets are not to be merged all in the same batch
        runs, frames = self._kept(store, runs, [*frames, done.changed], patience, now if sweeping else None)
        self._save(runs, frames, now, now if sweeping else swept)
        return done.rows

    def _kept(
        self, store: RunStore, runs: list[Run], frames: list[pl.DataFrame], patience: float, swept: int | None
    ) -> tuple[list[Run], list[pl.DataFrame]]:
        """Add the last of the frames as a run, merged with those before it that are short."""
        lengths = [frame.height for frame in frames]
        if not lengths[-1] and swept is None:
            return runs, frames[:-1]
        first = 0 if swept is not None else first_to_merge(lengths, patience)
        rows = merged(frames[first:], self._step.by, whole=first == 0)
        rows = rows if swept is None else self._step.lasting(rows, swept)
        number = 1 + max((run.number for run in runs), default=0)
        for run in runs[first:]:
            store.drop(run)
        store.sweep(runs[:first])
        if not rows.height:
            return runs[:first], frames[:first]
        return [*runs[:first], store.add(number, rows)], [*frames[:first], rows]

    def _save(self, runs: list[Run], frames: list[pl.DataFrame], now: int, swept: int) -> None:
        if runs:
            self._head.update((json.dumps([asdict(run) for run in runs]), now, swept))
        else:
            self._head.clear()
        if self._step.timed:
            timers = [self._step.next_timer(frames, now)]
            timers += [swept + self._step.ttl] if runs and self._step.ttl is not None else []
            set_timer(self._handle, min((each for each in timers if each is not None), default=None))


def _folder(name: str) -> Path:
    """Spark's own folder for files of this application on this machine, which it removes."""
    task = TaskContext.get()
    query = task.getLocalProperty("sql.streaming.queryId") if task else None
    return Path(SparkFiles.getRootDirectory()) / "state" / str(query) / f"{zlib.crc32(name.encode()):08x}"
