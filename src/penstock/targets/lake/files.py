"""The files of a batch, written by tasks on executors; nobody reads them before the commit."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute
from pyspark import TaskContext

from penstock import points
from penstock.errors import DataError, SinkError
from penstock.targets.lake.statistics import statistics_of

SUMMARY = "name string, size bigint, count bigint, partition string, statistics string"
_TYPES = [("name", pa.string()), ("size", pa.int64()), ("count", pa.int64())]
_SCHEMA = pa.schema([*_TYPES, ("partition", pa.string()), ("statistics", pa.string())])
_NULL, _NO_PARTITION = "__HIVE_DEFAULT_PARTITION__", "{}"
_LONGEST = 255  # bytes of a name in a folder
_GROUP = 256 * 1024  # rows of a row group


@dataclass(frozen=True)
class StagedFile:
    """A file of a batch by its path; `partition` and `statistics` are JSON objects, as Delta has them."""

    name: str
    size: int
    count: int
    partition: str
    statistics: str

    def values(self) -> dict[str, str | None]:
        """Return the values of the partition columns."""
        return dict(json.loads(self.partition))


@dataclass(frozen=True)
class FileWriter:
    """What a task does with its rows: those of one partition of the table after the other, a file for each.

    The first column says which partition a row is of, the others are those of the schema. `keys` must not be
    null, and the bounds of the `bounded` columns go to the log. Spark carries it to the executors.
    """

    sink: str
    folder: str
    schema: pa.Schema
    keys: tuple[str, ...]
    bounded: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = [self._write(place, *each) for place, each in enumerate(self._partitions(batches))]
        points.reach("sink.lake.written", self.sink)
        yield pa.RecordBatch.from_pylist([vars(each) for each in written], schema=_SCHEMA)

    def _partitions(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        runs = (run for batch in batches if batch.num_rows for run in _runs(batch))
        for partition, each in groupby(runs, key=lambda run: run[0]):
            yield partition, (rows for _, rows in each)

    def _write(self, place: int, partition: str, batches: Iterator[pa.RecordBatch]) -> StagedFile:
        _check_partition(partition)
        lane, attempt = _task()
        name = f"part-{Path(self.folder).name}-{lane:05d}-{attempt}-{place}.parquet"
        path = Path(self.folder, *_folders(partition), name)
        try:
            return self._write_file(path, partition, batches)
        except OSError as error:
            raise SinkError(f"can't write {str(path)!r}: {error}", hint="see to the disk") from error

    def _write_file(self, path: Path, partition: str, batches: Iterator[pa.RecordBatch]) -> StagedFile:
        if partition != _NO_PARTITION:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            with pq.ParquetWriter(file, self.schema, write_page_index=True) as writer:
                for batch in batches:
                    writer.write_batch(self._coerced(batch), row_group_size=_GROUP)
            file.flush()
            os.fsync(file.fileno())
        known = pq.read_metadata(path)
        name, size = str(path.relative_to(self.folder)), path.stat().st_size
        return StagedFile(name, size, known.num_rows, partition, statistics_of(known, self.bounded))

    def _coerced(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows in the file's own types: times in UTC, whatever the session's zone."""
        _, *columns = batch.columns
        typed = [values.cast(each.type) for values, each in zip(columns, self.schema, strict=True)]
        made = pa.record_batch(typed, schema=self.schema)
        for key in self.keys:
            if made[key].null_count:
                raise DataError(f"the key {key!r} is null in a row", hint="leave such rows out in the flow")
        return made


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Return the rows of a batch that are of one partition, one after the other."""
    ends = compute.run_end_encode(batch.column(0).cast(pa.string()))
    start = 0
    for end, partition in zip(ends.run_ends.to_pylist(), ends.values.to_pylist(), strict=True):
        yield partition, batch.slice(start, end - start)
        start = end


def _folders(partition: str) -> list[str]:
    """Return the folders of a partition: Delta has its values in the log, but polars takes them from here."""
    values = json.loads(partition).items()
    folders = [f"{name}={_NULL if value is None else quote(value, safe='')}" for name, value in values]
    for folder in folders:
        if len(folder) > _LONGEST:
            raise DataError(
                f"a partition's folder would have a name of {len(folder)} bytes, at most {_LONGEST} can be: "
                f"{folder[:60]!r}…",
                hint="partition by a shorter column, such as its first letters or a hash",
            )
    return folders


def _check_partition(partition: str) -> None:
    empty = [name for name, value in json.loads(partition).items() if value == ""]
    if empty:
        raise DataError(
            f"the partition column {empty[0]!r} holds an empty text, which is null to Delta",
            hint="make it null, or give it another value",
        )


def _task() -> tuple[int, int]:
    context = TaskContext.get()
    return (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
