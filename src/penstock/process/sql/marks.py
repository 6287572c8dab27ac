"""What goes with the columns of a query, in their metadata."""

from penstock.process.spark.java import Java

DELAY = "spark.watermarkDelayMs"  # Spark's, of a time with a watermark
WINDOWS = ("spark.timeWindow", "spark.sessionWindow")  # Spark's, of a window
EVENT_TIME = "penstock.event-time"  # a time that has a watermark in a stream, also where there is no stream
TABLE = "penstock.table"  # the name of the table that a column is of


def has_mark(column: Java, *marks: str) -> bool:
    """Whether a column has one of these."""
    if str(column.nodeName()) != "AttributeReference":
        return False
    return any(column.metadata().contains(mark) for mark in marks)
