"""The runs of a bucket in Spark's state store, and beside it as files that are looked into in place.

A worker gets other buckets in every batch, and to read all of their state each time would cost more than the
batch. A run never changes, so that a file of its name is as good as the store; where there is none, the store
has it.
"""

import io
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
import pyarrow as pa

from penstock.process.columns.lineage import Lineage
from penstock.process.state.frames import pack
from penstock.process.state.migration import migrated

_LONG = 600.0  # seconds after which no task can be about to use a file


@dataclass(frozen=True)
class Run:
    """What the head of a bucket has of a run; no other run has its name."""

    number: int
    name: str
    rows: int


class RunStore:
    """Reads, writes and drops runs; `empty` is one without rows, in the types of today."""

    def __init__(self, folder: Path, store: Any, empty: pl.DataFrame, lineage: Lineage) -> None:
        self._folder = folder
        self._store = store
        self._empty = empty
        self._lineage = lineage

    def read(self, run: Run) -> pl.DataFrame:
        """Return the rows of a run, in the shape of today."""
        path = self._folder / run.name
        if not path.exists():
            self._write(path, self._store.getValue((run.number,))[0])
        found = pl.DataFrame(pa.ipc.open_stream(pa.memory_map(str(path))).read_all())  # nothing is copied
        return migrated(found, self._empty, self._lineage)

    def add(self, number: int, rows: pl.DataFrame) -> Run:
        """Keep rows as a run."""
        run, packed = Run(number, uuid4().hex, rows.height), _aligned(pack(rows.rechunk()))
        self._store.updateValue((number,), (packed,))
        self._write(self._folder / run.name, packed)
        return run

    def drop(self, run: Run) -> None:
        """Forget a run; if the batch fails and is tried again, the store still has it."""
        self._store.removeKey((run.number,))
        (self._folder / run.name).unlink(missing_ok=True)

    def sweep(self, runs: Iterable[Run]) -> None:
        """Remove files of runs that are not there any more: of tries that failed, or dropped elsewhere."""
        names, long_ago = {run.name for run in runs}, time.time() - _LONG
        for path in self._folder.iterdir() if self._folder.exists() else ():
            with suppress(FileNotFoundError):  # another task may do the same
                if path.name not in names and path.stat().st_mtime < long_ago:
                    path.unlink()

    def _write(self, path: Path, packed: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(packed)
        part.replace(path)


def _aligned(packed: bytes) -> bytes:
    """Polars leaves out what no row uses, Arrow writes so that Polars need not copy what it looks into."""
    table = pa.ipc.open_stream(packed).read_all()
    target = io.BytesIO()
    with pa.ipc.new_stream(target, table.schema) as stream:
        stream.write_table(table)
    return target.getvalue()
