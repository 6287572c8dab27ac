"""State in columns: keys are bucketed, and a step takes a bucket's rows and its state as whole frames.

Rows cross between Spark and Python as packed frames, a few for each bucket, so that types stay what they are
and nothing is paid for each row or key.
"""

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.process.columns.lineage import lineage_of
from penstock.process.state.description import StateDescription
from penstock.process.state.packing import BUCKET, Packed, Unpacked
from penstock.process.state.processor import Processor, Work
from penstock.process.state.step import Fold, Step
from penstock.process.state.steps import Steps


def vectorised(
    rows: DataFrame, step: Step, schema: StructType, state: StateDescription, *, fold: Fold | None = None
) -> DataFrame:
    """Run a step over the buckets of rows; the event time is to be out of the rows, or late ones never come.

    `state` describes what the step keeps: a flow whose checkpoint holds something else is refused. `fold` is
    done to rows before they are shuffled, bucket by bucket: the step gets what it returns. In a batch query
    all rows are taken in at once, and then time ends.
    """
    key = [F.col("`" + name.replace("`", "``") + "`") for name in state.key]
    bucket = F.pmod(F.xxhash64(*key), F.lit(state.buckets)) if key else F.lit(0)
    empty = empty_frame(rows, rows.schema)
    empty = empty if fold is None else fold(empty)
    return through_buckets(
        rows, bucket, Steps(step, empty, lineage_of(rows.schema)), schema, state, fold=fold
    )


def columns_of(schema: StructType, *names: str) -> StructType:
    """Return the columns of these names, each once."""
    return StructType([schema[name] for name in dict.fromkeys(names)])


def through_buckets(
    rows: DataFrame,
    bucket: Column,
    work: Work,
    schema: StructType,
    state: StateDescription,
    *,
    fold: Fold | None = None,
    times: str = "EventTime",
) -> DataFrame:
    """Do work on the packed rows of buckets, which puts out packed rows of a schema.

    Spark shows of the processor only the column that it puts out, whose metadata describe the state.
    """
    placed = rows.withColumn(BUCKET, bucket.cast("int"))
    numbered = placed.toDF(
        *map(str, range(len(placed.columns)))
    )  # names with a dot are not for Python functions
    packed = numbered.mapInArrow(Packed(tuple(placed.columns), fold), f"{BUCKET} int, rows binary")
    output = StructType([StructField(state.column, BinaryType(), metadata=state.to_metadata())])
    stepped = packed.groupBy(BUCKET).transformWithStateInPandas(
        Processor(state.column, work), output, "Append", times
    )
    schema = schema.toNullable()
    return stepped.toDF("rows").mapInArrow(Unpacked(arrow_schema(rows, schema)), schema)


def arrow_schema(rows: DataFrame, schema: StructType) -> pa.Schema:
    """Return a schema as Arrow spells it in the session of some rows."""
    return to_arrow_schema(schema, timezone=rows.sparkSession.conf.get("spark.sql.session.timeZone"))


def empty_frame(rows: DataFrame, schema: StructType) -> pl.DataFrame:
    """Return a frame of a schema without rows, as the session of some rows spells it."""
    return pl.DataFrame(arrow_schema(rows, schema).empty_table())
