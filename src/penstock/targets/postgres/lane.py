"""A lane: the task that copies its share of a batch into the staging table, on an executor."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain

import psycopg
import pyarrow as pa
from psycopg.sql import SQL, Identifier
from pyarrow import compute, csv
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import points
from penstock.errors import DataError
from penstock.settings import Secret
from penstock.targets.postgres.columns import DELETED, ORDER, TableColumn
from penstock.targets.postgres.connection import asking, connect
from penstock.targets.postgres.staging import Staging

_SUMMARY = "lane int, attempt bigint, count bigint"
# Text is always quoted and null never: this is how PostgreSQL distinguishes '' from NULL.
_CSV = csv.WriteOptions(include_header=False, quoting_style="needed")


@dataclass(frozen=True)
class Lane:
    """What a task needs to know to copy rows; Spark carries it to the executors."""

    sink: str
    address: Secret
    staging: Staging

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy all rows in one transaction, and yield how many they were."""
        lane, attempt = _task()
        count = self._copy((batch for batch in batches if batch.num_rows), lane, attempt)
        points.reach("sink.postgres.staged", self.sink)
        summary = {"lane": pa.array([lane], pa.int32()), "attempt": [attempt], "count": [count]}
        yield pa.RecordBatch.from_pydict(summary)

    def _copy(self, batches: Iterator[pa.RecordBatch], lane: int, attempt: int) -> int:
        first = next(batches, None)
        if first is None:
            return 0
        _, _, *names = self.staging.names  # lane and attempt are put in front here
        count = 0
        with (
            connect(self.address, self.sink) as connection,
            asking("stage rows"),
            connection.cursor().copy(self._statement()) as copy,
        ):
            for batch in chain([first], batches):
                copy.write(lines(batch.rename_columns(names), lane, attempt))
                count += batch.num_rows
        return count

    def _statement(self) -> psycopg.sql.Composed:
        columns = SQL(", ").join(map(Identifier, self.staging.names))
        return SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(self.staging.identifier, columns)


def stage(
    rows: DataFrame,
    lane: Lane,
    columns: Sequence[TableColumn],
    keys: Sequence[str],
    lanes: int,
    *,
    ordered: bool,
) -> DataFrame:
    """Return what stages rows when it is run, those of one key by one task, with what each has `Staged`.

    Where they are to be `ordered`, rows of a key are numbered by their `_order`, if they have one, and as
    they came before they were shuffled: what arrives first afterwards is a matter of chance.
    """
    staged = {column.name: column.staged() for column in columns}
    if DELETED in lane.staging.names:
        staged[DELETED] = F.col(DELETED)
    places = _places(staged)
    by = [F.col(ORDER)] if ORDER in rows.columns else []
    order = [*by, F.monotonically_increasing_id()] if ordered else []
    placed = rows.select(
        *(each.alias(f"order{number}") for number, each in enumerate(order)),
        *(staged[name].alias(place) for name, place in places.items()),
    )
    # By their hash: Spark leaves out a shuffle by the columns that rows are grouped by already.
    by_key = [F.hash(*(places[key] for key in keys))] if keys else []
    spread = placed.repartition(lanes, *by_key)
    if ordered:
        spread = spread.sortWithinPartitions(*placed.columns[: len(order)])
    ordinal = F.monotonically_increasing_id().alias("ordinal")
    return spread.select(ordinal, *places.values()).mapInArrow(lane, _SUMMARY)


def _places(names: Iterable[str]) -> dict[str, str]:
    """Names that Spark can do without quotes: mapInArrow does not know how to quote."""
    return {name: f"c{number}" for number, name in enumerate(names)}


def lines(batch: pa.RecordBatch, lane: int, attempt: int) -> bytes:
    """Return rows as lines of CSV, each with its lane and attempt in front."""
    tags = [pa.repeat(pa.scalar(lane, pa.int32()), len(batch)), pa.repeat(attempt, len(batch))]
    columns = map(_without_zone, batch.columns)
    tagged = pa.record_batch([*tags, *columns], names=["lane", "attempt", *batch.schema.names])
    text = BytesIO()
    csv.write_csv(tagged, text, _CSV)
    written = text.getvalue()
    if b"\0" in written:
        raise _nul(batch)
    return written


def _without_zone(values: pa.Array) -> pa.Array:
    """Return times as they are in UTC, the connection's zone; with one, Arrow takes 30 times as long."""
    return values.view(pa.timestamp("us")) if pa.types.is_timestamp(values.type) else values


def _nul(batch: pa.RecordBatch) -> DataError:
    names = [
        field.name
        for field, values in zip(batch.schema, batch.columns, strict=True)
        if _is_text(field.type) and compute.any(compute.match_substring(values, "\0")).as_py()
    ]
    return DataError(
        f"column {' and '.join(map(repr, names))} holds a NUL character, which PostgreSQL's text can't",
        hint="take it out in the flow, as with translate(name, '\\0', ''), or make the column binary",
    )


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _task() -> tuple[int, int]:
    context = TaskContext.get()
    return (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
