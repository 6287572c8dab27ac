"""The changes of a table, as flows read them: a row, or that it is gone, and where it stands in the log."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.process.source import DELETED, PLACE


def is_gone(table: DataFrame) -> Column:
    """Whether a change is a deletion."""
    return F.coalesce(F.col(DELETED), F.lit(False)) if DELETED in table.columns else F.lit(False)


def whole_row(table: DataFrame) -> Column:
    """The row of a change; null if it is gone."""
    columns = (f"`{name}`" for name in table.columns if name not in (PLACE, DELETED))
    return F.when(~is_gone(table), F.struct(*columns))
