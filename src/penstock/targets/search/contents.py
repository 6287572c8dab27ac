"""What an index holds, as a DataFrame."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.targets.search.folder import IndexFolder
from penstock.targets.search.reader import IndexReader


def contents(spark: SparkSession, path: str, schema: StructType) -> DataFrame:
    """Return some columns of an index; one task reads them, so that they are of one moment."""
    read = _Read(path, to_arrow_schema(schema, timezone="UTC"))
    return spark.range(1).coalesce(1).mapInArrow(read, schema)


@dataclass(frozen=True)
class _Read:
    """What the task does; Spark carries it to an executor."""

    path: str
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from self._rows()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        folder = IndexFolder(Path(self.path))
        if folder.pointer() is None:
            return  # nothing was written so far
        for batch in IndexReader(folder).batches():
            yield batch.select(self.schema.names).cast(self.schema)
