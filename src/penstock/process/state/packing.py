"""Rows as packed frames of buckets, and back: functions for Spark's `mapInArrow`."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from penstock.process.state.frames import arrow_batches, pack, unpack
from penstock.process.state.step import Fold

BUCKET = "_bucket"
_PACKED = 100_000  # rows


@dataclass(frozen=True)
class Unpacked:
    """Spark's rows of packed ones, in the types that were declared."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column("rows").to_pylist():
                yield from arrow_batches(unpack(packed), self.schema)


@dataclass(frozen=True)
class Packed:
    """Rows, whose columns are named here, as packed frames of buckets, folded if they are to be."""

    names: tuple[str, ...]
    fold: Fold | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in _gathered(batches):
            rows.columns = list(self.names)
            found = rows.partition_by(BUCKET, as_dict=True, include_key=False)
            parts = found.values() if self.fold is None else map(self.fold, found.values())
            buckets = pa.array([bucket for (bucket,) in found], pa.int32())
            packed = pa.array(map(pack, parts), pa.binary())
            yield pa.record_batch([buckets, packed], names=[BUCKET, "rows"])


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= _PACKED:
            yield pl.DataFrame(pa.Table.from_batches(held))
            held = []
    if held:
        yield pl.DataFrame(pa.Table.from_batches(held))
