"""What a table holds, as a DataFrame that Spark reads from the files of one snapshot."""

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.process.columns.naming import quoted
from penstock.targets.lake.delta import is_table, load
from penstock.targets.lake.prepared import spark_schema
from penstock.targets.lake.table import DeclaredTable

if TYPE_CHECKING:
    from deltalake import DeltaTable

_FILE = "penstock_file"


def contents(spark: SparkSession, table: DeclaredTable, schema: StructType) -> DataFrame:
    """Return some columns of a table; those that it has not yet are null."""
    if not is_table(table.root):
        return spark.createDataFrame([], schema)
    delta = load(table.root)
    actions = active_files(delta)
    if not actions:
        return spark.createDataFrame([], schema)
    found = _read(spark, table, delta, actions)
    return found.select(*(_column(found, field) for field in schema))


def active_files(delta: "DeltaTable") -> list[dict[str, Any]]:
    """Return the files of a snapshot: their `path` in the folder and the values of their `partition`."""
    names = ["path", *(["partition"] if delta.metadata().partition_columns else [])]
    found = pa.table(delta.get_add_actions()).select(names).to_pylist()
    return [{"partition": {}, **each, "path": unquote(each["path"])} for each in found]


def _read(
    spark: SparkSession, table: DeclaredTable, delta: "DeltaTable", actions: list[dict[str, Any]]
) -> DataFrame:
    """Read files by their names: a partition's values are in the log, not in the path."""
    partitions = delta.metadata().partition_columns
    columns = spark_schema(delta)
    held = StructType([field for field in columns if field.name not in partitions])
    paths = [_escaped(str(table.root / each["path"])) for each in actions]
    # Spark would otherwise take folders for partition columns.
    rows = spark.read.schema(held).option("recursiveFileLookup", "true").parquet(*paths)
    if not partitions:
        return rows
    named = StructType([StructField(_FILE, StringType()), *(columns[name] for name in partitions)])
    values = [
        (each["path"].rpartition("/")[2], *(each["partition"][n] for n in partitions)) for each in actions
    ]
    known = F.broadcast(spark.createDataFrame(values, named))
    return rows.withColumn(_FILE, F.col("_metadata.file_name")).join(known, _FILE)


def _column(rows: DataFrame, field: StructField) -> Column:
    if field.name in rows.columns:
        return quoted(field.name)
    return F.lit(None).cast(field.dataType).alias(field.name)


def _escaped(path: str) -> str:
    """Return a path in which nothing is a pattern to Hadoop."""
    return "".join(f"\\{each}" if each in "\\{}[]*?" else each for each in path)
