"""The order of events: by their time, and of equal times by their place in the log."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import FlowError
from penstock.process.columns.data_error import data_error
from penstock.process.columns.names import OFFSET, PARTITION, SOURCE, TIME, US
from penstock.process.columns.refusals import refuse_missing

_EARLY = (
    ", and a stream's watermark begins at 1970; filter such events out before, or declare the aggregates "
    "(agg.count()): windows with a late policy count them as late"
)


def column(rows: DataFrame, name: str) -> Column:
    """Return a column by its name, which may have a dot; what is no name is a path into a struct."""
    return F.col(f"`{name}`" if name in rows.columns else name)


def timestamp(rows: DataFrame, name: str) -> Column:
    """Return the column of a time; refuse what is no timestamp, of which Spark would make one at run time."""
    if name.split(".")[0] not in rows.columns:
        refuse_missing(rows, (name,), "what is looked at by its times")
    found = column(rows, name)
    kind = rows.select(found).schema[0].dataType.simpleString()
    if kind != "timestamp":
        raise FlowError(f"the time {name!r} is {kind}, expected a timestamp", hint="cast it before")
    return found


def required_time(rows: DataFrame, name: str) -> Column:
    """Return the time of an event; one that has none stops the flow."""
    message = f"an event has no time in column '{name}'; filter such events out before"
    return F.coalesce(timestamp(rows, name), data_error(F.lit(message)).cast("timestamp"))


def since_epoch(time: Column) -> Column:
    """Return the time of an event for Spark's own operators, whose watermark begins at 1970."""
    early = F.concat(F.lit("an event is dated "), time.cast("string"), F.lit(_EARLY))
    return F.when(time < F.timestamp_micros(F.lit(0)), data_error(early).cast("timestamp")).otherwise(time)


def order_of(rows: DataFrame, time: Column | None = None, *, numbered: bool = False) -> list[Column]:
    """Return the columns of the order, of rows that have a watermark or whose time is given.

    Without a place all rows are at the same, unless those of a batch are to be numbered as they come. Others
    may have the same place, too: those of united topics, or exploded ones.
    """
    partition, offset = _source(rows, numbered=numbered)
    return [
        F.unix_micros(F.col(TIME) if time is None else time).alias(US),
        partition.cast("int").alias(PARTITION),
        offset.cast("long").alias(OFFSET),
    ]


def source_parts(rows: DataFrame) -> list[str]:
    """Return what is known of the place of rows in the log: its fields, of which there may be none."""
    kind = rows.schema[SOURCE].dataType if SOURCE in rows.columns else None
    return kind.names if isinstance(kind, StructType) else []


def _source(rows: DataFrame, *, numbered: bool) -> tuple[Column, Column]:
    if not source_parts(rows):
        return F.lit(0), F.monotonically_increasing_id() if numbered and not rows.isStreaming else F.lit(0)
    return F.col(SOURCE)["partition"], F.col(SOURCE)["offset"]
