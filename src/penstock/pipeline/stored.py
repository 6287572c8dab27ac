"""The state of a flow as its checkpoint holds it: of any key, as it is or as it was after a batch."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.generation import Generations
from penstock.pipeline.state import DESCRIPTION
from penstock.process.columns.lineage import Lineage
from penstock.process.state.buckets import RUNS
from penstock.process.state.description import stored_key
from penstock.process.state.frames import unpack
from penstock.process.state.migration import renamed
from penstock.process.state.runs import GONE, HASH
from penstock.settings import Settings

_VECTORISED = "transformWithState"
# How Spark finds its way in the list of a key's greatest values: nobody's business.
_INNER = {"orderings", "heapIndices", "valueSet"}


@dataclass(frozen=True)
class Stored:
    """What a stateful step of a flow keeps under a key; steps are numbered as Spark does, from the end."""

    step: int
    key: dict[str, Any]
    value: dict[str, Any]


def stored_state(
    spark: SparkSession, settings: Settings, flow: str, key: Sequence[str], *, batch: int | None = None
) -> list[Stored]:
    """Return what `pipeline.flow` keeps under a key, whose parts are given as text.

    The flow may be running: what its last finished batch has left is read, or an earlier one, as long as
    Spark keeps it (100 batches, unless it is said otherwise).
    """
    pipeline, _, name = flow.rpartition(".")
    identity = Generations(spark, settings, Identity.of(settings.namespace, pipeline, name)).at_work()
    checkpoint = Checkpoint(spark, f"{identity.folder(settings.flows)}/checkpoint")
    found: list[Stored] = []
    for step in _steps(spark, checkpoint, flow, batch):
        reader = spark.read.format("statestore").option("operatorId", step.operatorId)
        if batch is not None:
            reader = reader.option("batchId", batch)
        if step.operatorName.startswith(_VECTORISED):
            by, lineage = _described(checkpoint)
            frames = _frames(reader, checkpoint, step)
            found += _of_frames(frames, step.operatorId, _OfKey(tuple(by), tuple(key), lineage))
        else:
            found += _of_rows(reader.load(checkpoint.path), step.operatorId, tuple(key))
    return found


def _steps(spark: SparkSession, checkpoint: Checkpoint, flow: str, batch: int | None) -> list[Row]:
    if checkpoint.id is None:
        raise FlowError(f"flow {flow!r} has no checkpoint", hint="has it run, and with these settings?")
    try:
        steps = spark.read.format("state-metadata").load(checkpoint.path).collect()
    except PySparkException:  # it keeps no state
        return []
    for step in steps:
        if batch is not None and not step.minBatchId <= batch <= step.maxBatchId:
            raise FlowError(
                f"the state of {flow!r} after batch {batch} is not there",
                hint=f"batches {step.minBatchId} to {step.maxBatchId} are",
            )
    return list({step.operatorId: step for step in steps}.values())


def _described(checkpoint: Checkpoint) -> tuple[list[str], Lineage]:
    """The key columns of a vectorised step, and the former names of all."""
    return stored_key(json.loads(checkpoint.read(DESCRIPTION) or "{}").get("state", []))


def _of_rows(rows: DataFrame, step: int, key: tuple[str, ...]) -> Iterator[Stored]:
    schema = rows.schema["key"].dataType
    assert isinstance(schema, StructType)  # noqa: S101
    parts = [field.name for field in schema if not isinstance(field.dataType, StructType)]
    same = [F.col("key")[name].cast("string") == value for name, value in zip(parts, key, strict=False)]
    fits = F.lit(len(parts) == len(key))
    for condition in same:
        fits = fits & condition
    for row in rows.where(fits).collect():
        yield Stored(step, _plain(row.key), _plain(row.value))


def _frames(reader: DataFrameReader, checkpoint: Checkpoint, step: Row) -> DataFrame:
    """Packed frames, numbered in the order in which they were written."""
    if f'"{RUNS}"' in step.operatorProperties:
        runs = reader.option("stateVarName", RUNS).load(checkpoint.path)
        return runs.select("user_map_key.number", "user_map_value.packed")
    buckets = reader.option("stateVarName", "bucket").load(checkpoint.path)
    return buckets.select(F.lit(0).cast("long").alias("number"), F.col("value.kept").alias("packed"))


def _of_frames(frames: DataFrame, step: int, of_key: "_OfKey") -> Iterator[Stored]:
    """Frames are looked through where they are; only what is of the key comes here, the newest of it."""
    found = frames.mapInArrow(of_key, "number long, row string").collect()
    newest = max((row.number for row in found), default=0)
    for value in (json.loads(row.row) for row in found if row.number == newest):
        if not value.pop(GONE, False):
            names = of_key.by or list(value)[: len(of_key.key)]
            yield Stored(step, {name: value.pop(name) for name in names}, value)


@dataclass(frozen=True)
class _OfKey:
    """The rows of packed frames that are of a key, as JSON."""

    by: tuple[str, ...]
    key: tuple[str, ...]
    lineage: Lineage

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            frames = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            rows = [
                {"number": number, "row": json.dumps(row, default=str)}
                for number, packed in frames
                for row in self._of(packed)
            ]
            yield pa.RecordBatch.from_pylist(rows, pa.schema({"number": pa.int64(), "row": pa.string()}))

    def _of(self, packed: bytes) -> list[dict[str, Any]]:
        frame = renamed(unpack(packed), self.lineage)
        names = self.by or tuple(frame.columns[: len(self.key)])
        if len(names) != len(self.key):
            return []
        same = [pl.col(name).cast(pl.String) == value for name, value in zip(names, self.key, strict=True)]
        return frame.filter(*same).drop(HASH, strict=False).to_dicts()


def _plain(value: Any) -> Any:
    """A row of Spark's as plain values, without what only Spark needs."""
    if isinstance(value, Row):
        return {name: _plain(each) for name, each in value.asDict().items() if name not in _INNER}
    if isinstance(value, list):
        return [_plain(each) for each in value if each is not None]
    return value
