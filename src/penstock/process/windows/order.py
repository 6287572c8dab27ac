"""The order of events: by their time, and of equal times by their place in the log."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.process.source import PLACE

TIME = "_time"  # the column of which Spark makes the watermark; null where an event is dated too far ahead
US, PARTITION, OFFSET = ORDER = ("_us", "_partition", "_offset")


def required_time(column: str) -> Column:
    """Return the time of an event; one that has none stops the flow."""
    missing = F.raise_error(F.lit(f"an event has no time in column '{column}'"))
    return F.coalesce(F.col(column), missing.cast("timestamp"))


def order_of(rows: DataFrame) -> list[Column]:
    """Return the columns of the order, of rows that have a watermark; without a place all are at the same."""
    placed = PLACE in rows.columns
    partition, offset = (F.col(PLACE)[part] if placed else F.lit(0) for part in ("partition", "offset"))
    return [
        F.unix_micros(TIME).alias(US),
        partition.cast("int").alias(PARTITION),
        offset.cast("long").alias(OFFSET),
    ]
