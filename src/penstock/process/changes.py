"""The changes of a table, as flows read them: a row, or that it is gone, and where it stands in the log."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import FlowError
from penstock.process.source import DELETED, PLACE


def refuse_missing(rows: DataFrame, columns: Sequence[str], what: str) -> None:
    """Refuse rows without the columns that are needed."""
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise FlowError(f"{what} has no column {missing[0]!r}", hint=f"it has {', '.join(rows.columns)}")


def is_gone(table: DataFrame) -> Column:
    """Whether a change is a deletion."""
    return F.coalesce(F.col(DELETED), F.lit(False)) if DELETED in table.columns else F.lit(False)


def whole_row(table: DataFrame) -> Column:
    """The row of a change; null if it is gone."""
    columns = (f"`{name}`" for name in table.columns if name not in (PLACE, DELETED))
    return F.when(~is_gone(table), F.struct(*columns))
