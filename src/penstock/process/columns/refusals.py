"""Columns that an operator can't work with, refused when a flow is planned."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from penstock.errors import FlowError


def refuse_missing(rows: DataFrame, columns: Sequence[str], what: str) -> None:
    """Refuse rows without the columns that are needed."""
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise FlowError(f"{what} has no column {missing[0]!r}", hint=f"it has {', '.join(rows.columns)}")


def refuse_unlike(one: str, its_type: DataType, other: str, other_type: DataType) -> None:
    """Refuse to join on columns of different types: Spark would cast one, and fail at a row that it can't."""
    kinds = its_type.simpleString(), other_type.simpleString()
    if kinds[0] != kinds[1]:
        raise FlowError(f"a join of {one!r}, {kinds[0]}, with {other!r}, {kinds[1]}", hint="cast one of them")


def refuse_few_buckets(buckets: int) -> None:
    """Refuse to spread keys over nothing."""
    if buckets < 1:
        raise FlowError(f"keys are to be spread over {buckets} buckets, expected at least one")
