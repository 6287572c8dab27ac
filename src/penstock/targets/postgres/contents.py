"""What a table holds, as a DataFrame."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from psycopg.sql import SQL, Composed, Identifier
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.settings import Secret, Settings
from penstock.targets.postgres.connection import asking, connect
from penstock.targets.postgres.table import DeclaredTable

_AT_ONCE = 10_000  # rows


def contents(spark: SparkSession, table: DeclaredTable, settings: Settings, schema: StructType) -> DataFrame:
    """Return some columns of a table; one task reads them, so that they are of one moment."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    read = _Read(table.address(settings), table.identifier, arrow)
    return spark.range(1).coalesce(1).mapInArrow(read, schema)


@dataclass(frozen=True)
class _Read:
    """What the task does; Spark carries it to an executor."""

    address: Secret
    table: Identifier
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from self._rows()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        with (
            connect(self.address, "verify") as connection,
            asking("read a table"),
            connection.transaction(),
            connection.cursor("penstock_contents") as cursor,
        ):
            cursor.execute(self._statement())
            while rows := cursor.fetchmany(_AT_ONCE):
                typed = zip(zip(*rows, strict=True), self.schema.types, strict=True)
                columns = [pa.array(values, type) for values, type in typed]
                yield pa.record_batch(columns, schema=self.schema)

    def _statement(self) -> Composed:
        names = SQL(", ").join(Identifier(name) for name in self.schema.names)
        return SQL("SELECT {} FROM {}").format(names, self.table)
