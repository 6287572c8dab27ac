"""The order of events: by their time, and of equal times by their place in the log."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import DataError
from penstock.process.source import PLACE

TIME = "_time"  # the column of which Spark makes the watermark; null where an event is dated too far ahead
_EARLY = (
    ", and a stream's watermark begins at 1970; filter such events out before, or declare the aggregates "
    "(agg.count()): windows with a late policy count them as late"
)
US, PARTITION, OFFSET = ORDER = ("_us", "_partition", "_offset")


def required_time(column: str) -> Column:
    """Return the time of an event; one that has none stops the flow."""
    missing = data_error(F.lit(f"an event has no time in column '{column}'; filter such events out before"))
    return F.coalesce(F.col(column), missing.cast("timestamp"))


def since_epoch(time: Column) -> Column:
    """Return the time of an event for Spark's own operators, whose watermark begins at 1970."""
    early = F.concat(F.lit("an event is dated "), time.cast("string"), F.lit(_EARLY))
    return F.when(time < F.timestamp_micros(F.lit(0)), data_error(early).cast("timestamp")).otherwise(time)


def data_error(message: Column) -> Column:
    """Return what stops a query; whoever runs it finds the error in Spark's text by its name and its line.

    The name is in two parts, so that it is not found in the plan, which Spark's text has, too.
    """
    name = f"{DataError.__module__}.", f"{DataError.__name__}: "
    return F.raise_error(F.concat(*map(F.lit, name), message, F.lit("\n")))


def order_of(rows: DataFrame) -> list[Column]:
    """Return the columns of the order, of rows that have a watermark; without a place all are at the same."""
    placed = PLACE in rows.columns
    partition, offset = (F.col(PLACE)[part] if placed else F.lit(0) for part in ("partition", "offset"))
    return [
        F.unix_micros(TIME).alias(US),
        partition.cast("int").alias(PARTITION),
        offset.cast("long").alias(OFFSET),
    ]
