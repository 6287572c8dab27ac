"""How a batch's rows come to files: spread over tasks, of an upsert's key only the last."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, StructField, StructType

from penstock.process.columns.naming import quoted
from penstock.targets.lake.columns import DELETED, ORDER
from penstock.targets.lake.files import SUMMARY, FileWriter
from penstock.targets.lake.table import DeclaredTable

_PARTITION, _ORDER, _RANK = "penstock_partition", "penstock_order", "penstock_rank"


@dataclass(frozen=True)
class Staging:
    """Where a batch's files go, and what of them the table's log is to know."""

    sink: str
    folder: str
    bounded: tuple[str, ...]
    lanes: int


def stage(rows: DataFrame, table: DeclaredTable, columns: StructType, staging: Staging) -> DataFrame:
    """Return what writes rows to files when it is run, with what each file holds."""
    upsert = table.write == "upsert"
    spread = _last_of_each(rows, table.keys, staging.lanes) if upsert else _spread(rows, table, staging.lanes)
    held = staged_columns(table, columns, deletes=DELETED in rows.columns)
    arrow = to_arrow_schema(held, timezone="UTC")
    writer = FileWriter(staging.sink, staging.folder, arrow, table.keys if upsert else (), staging.bounded)
    partition = F.lit("{}") if upsert else _partition(table.partitions)
    # mapInArrow does not know how to quote names.
    placed = spread.select(
        partition.alias("c"), *(_value(each).alias(f"c{n}") for n, each in enumerate(held))
    )
    ordered = placed.sortWithinPartitions("c") if table.partitions and not upsert else placed
    return ordered.mapInArrow(writer, SUMMARY)


def staged_columns(table: DeclaredTable, columns: StructType, *, deletes: bool) -> StructType:
    """Return the columns of staged files; those of an append are the table's, without its partitions."""
    if table.write == "append":
        return StructType([field for field in columns if field.name not in table.partitions])
    return StructType([*columns, *[StructField(DELETED, BooleanType())] * deletes])


def _value(field: StructField) -> Column:
    return F.coalesce(F.col(DELETED), F.lit(False)) if field.name == DELETED else quoted(field.name)


def _spread(rows: DataFrame, table: DeclaredTable, lanes: int) -> DataFrame:
    own = ("id",) if "id" in rows.columns else ()
    names = table.partitions or table.keys or own
    return rows.repartition(lanes, *map(quoted, names))


def _last_of_each(rows: DataFrame, keys: Sequence[str], lanes: int) -> DataFrame:
    """Return the last row of each key; rows are numbered before the shuffle, which loses their order."""
    order = [F.col(ORDER)] if ORDER in rows.columns else []
    numbered = rows.withColumn(_ORDER, F.struct(*order, F.monotonically_increasing_id()))
    latest = Window.partitionBy(*map(quoted, keys)).orderBy(F.col(_ORDER).desc())
    ranked = numbered.repartition(lanes, *map(quoted, keys)).withColumn(_RANK, F.row_number().over(latest))
    return ranked.where(F.col(_RANK) == 1)


def _partition(names: Sequence[str]) -> Column:
    """Return the values of the partition columns as a JSON object of texts, as Delta has them."""
    if not names:
        return F.lit("{}")
    texts = F.struct(*(quoted(name).cast("string").alias(name) for name in names))
    return F.to_json(texts, {"ignoreNullFields": "false"})
