"""State in columns: keys are bucketed, and a step takes a bucket's rows and its state as whole frames.

Rows cross between Spark and Python as packed frames, a few for each bucket, so that types stay what they are
and nothing is paid for each row or key.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.process.columns.lineage import Lineage, lineage_of
from penstock.process.state.description import StateDescription
from penstock.process.state.migration import migrated

BEFORE, FOREVER = -(2**62), 2**62  # watermarks: before the first one, and at the end of a batch query
STATE = "kept binary, last long, dropped long, missed long"  # of a bucket: frame, last watermark, two counts
_BUCKET = "_bucket"
_PACKED = 100_000  # rows


@dataclass(frozen=True)
class Stepped:
    """What came of a step: state, rows for the result, when to look again, and two counts.

    `dropped` rows went nowhere; a row is `missed` by each of its windows that was over when it came.
    """

    kept: pl.DataFrame
    rows: pl.DataFrame
    timer: int | None
    dropped: int = 0
    missed: int = 0


Fold = Callable[[pl.DataFrame], pl.DataFrame]


class Step(Protocol):
    """What happens to a bucket when rows come or its timer fires; times are in microseconds."""

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped: ...


def vectorised(
    rows: DataFrame,
    by: Sequence[str],
    step: Step,
    schema: StructType,
    *,
    buckets: int,
    state: str,
    kind: str | None = None,
    state_columns: Sequence[str] = (),
    fold: Fold | None = None,
) -> DataFrame:
    """Run a step over the buckets of rows; the event time is to be out of the rows, or late ones never come.

    `state` describes what the step keeps: a flow whose checkpoint holds something else is refused.
    `state_columns` are the columns besides the key that are in it, `kind` is `state` by the oldest names of
    columns. `fold` is done to rows before they are shuffled, bucket by bucket: the step gets what it returns.
    In a batch query all rows are taken in at once, and then time ends.
    """
    key = [F.col("`" + name.replace("`", "``") + "`") for name in by]
    bucket = F.pmod(F.xxhash64(*key), F.lit(buckets)) if by else F.lit(0)
    empty = empty_frame(rows, rows.schema)
    empty = empty if fold is None else fold(empty)
    name = f"{state}, in {buckets} buckets by {', '.join(by)}"
    kept = StructType([rows.schema[column] for column in dict.fromkeys((*by, *state_columns))])
    description = StateDescription(kind or state, kept, tuple(by), buckets)
    steps = Steps(step, empty, name, lineage_of(rows.schema))
    return through_buckets(rows, bucket, steps, name, schema, description, fold=fold)


def through_buckets(
    rows: DataFrame,
    bucket: Column,
    processor: StatefulProcessor,
    name: str,
    schema: StructType,
    description: StateDescription,
    *,
    fold: Fold | None = None,
    times: str = "EventTime",
) -> DataFrame:
    """Run a processor over the packed rows of buckets, which packs rows of a schema in the column `name`.

    Spark shows of the processor only what it puts out: that column's metadata describes the state.
    """
    placed = rows.withColumn(_BUCKET, bucket.cast("int"))
    numbered = placed.toDF(
        *map(str, range(len(placed.columns)))
    )  # names with a dot are not for Python functions
    packed = numbered.mapInArrow(_Packed(tuple(placed.columns), fold), f"{_BUCKET} int, rows binary")
    output = StructType([StructField(name, BinaryType(), metadata=description.to_metadata())])
    stepped = packed.groupBy(_BUCKET).transformWithStateInPandas(processor, output, "Append", times)
    schema = schema.toNullable()
    return stepped.toDF("rows").mapInArrow(_Unpacked(arrow_schema(rows, schema)), schema)


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


@dataclass(frozen=True)
class _Unpacked:
    """Spark's rows of packed ones, in the types that were declared."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column("rows").to_pylist():
                yield from arrow_batches(unpack(packed), self.schema)


@dataclass(frozen=True)
class _Packed:
    """Rows, whose columns are named here, as packed frames of buckets, folded if they are to be."""

    names: tuple[str, ...]
    fold: Fold | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in _gathered(batches):
            rows.columns = list(self.names)
            found = rows.partition_by(_BUCKET, as_dict=True, include_key=False)
            parts = found.values() if self.fold is None else map(self.fold, found.values())
            buckets = pa.array([bucket for (bucket,) in found], pa.int32())
            packed = pa.array(map(pack, parts), pa.binary())
            yield pa.record_batch([buckets, packed], names=[_BUCKET, "rows"])


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= _PACKED:
            yield pl.DataFrame(pa.Table.from_batches(held))
            held = []
    if held:
        yield pl.DataFrame(pa.Table.from_batches(held))


def pack(frame: pl.DataFrame) -> bytes:
    """Return a frame as bytes."""
    target = io.BytesIO()
    frame.write_ipc_stream(target)
    return target.getvalue()


def unpack(packed: bytes) -> pl.DataFrame:
    """Return the frame that was packed."""
    return pl.read_ipc_stream(packed)


def arrow_schema(rows: DataFrame, schema: StructType) -> pa.Schema:
    """Return a schema as Arrow spells it in the session of some rows."""
    return to_arrow_schema(schema, timezone=rows.sparkSession.conf.get("spark.sql.session.timeZone"))


def empty_frame(rows: DataFrame, schema: StructType) -> pl.DataFrame:
    """Return a frame of a schema without rows, as the session of some rows spells it."""
    return pl.DataFrame(arrow_schema(rows, schema).empty_table())


def arrow_batches(frame: pl.DataFrame, schema: pa.Schema) -> list[pa.RecordBatch]:
    """Return a frame as Spark takes it, in the types that were declared."""
    batches: list[pa.RecordBatch] = (
        frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()
    )
    return batches
