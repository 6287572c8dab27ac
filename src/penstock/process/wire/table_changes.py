"""The changes of a table, as flows read them: a row, or that it is gone, and where it stands in the log."""

from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import functions as F

from penstock.process.columns.names import DELETED, ROW_MARKS


def is_gone(table: DataFrame) -> Column:
    """Whether a change is a deletion."""
    return F.coalesce(F.col(DELETED), F.lit(False)) if DELETED in table.columns else F.lit(False)


def whole_row(table: DataFrame) -> Column:
    """The row of a change; null if it is gone."""
    columns = (f"`{name}`" for name in table.columns if name not in ROW_MARKS)
    return F.when(~is_gone(table), F.struct(*columns))


def newest_of_one_partition(
    newest: Column, partition: Column, table: str, over: WindowSpec | None = None
) -> Column:
    """The newest change of a key; the flow stops if the key's changes are in more than one partition.

    Offsets order two changes in one partition only: a key moves when there come to be more.
    """
    first, last = F.min(partition), F.max(partition)
    if over is not None:
        first, last = first.over(over), last.over(over)
    message = F.concat(
        F.lit(f"{table} has changes of one key in its partitions "), first, F.lit(" and "), last, F.lit(_GREW)
    )
    return F.when(first.isNull() | (first == last), newest).otherwise(F.raise_error(message))


_GREW = (
    ": it was given more partitions, and which change is the newest is not known any more; "
    "copy the table to a new topic"
)
