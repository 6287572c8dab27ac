"""Sums of decimals that need more than 38 digits: Polars would go on with a wrong number without a word."""

from collections.abc import Mapping
from fractions import Fraction

import polars as pl
from polars.dataframe.group_by import GroupBy, RollingGroupBy

from penstock.errors import DataError
from penstock.process.windows.aggregates import Aggregate, Sum

_DIGITS = 38
_NEAR = 0.99  # of the bound: doubles are not exact


def refuse_overflow(
    rows: pl.DataFrame, groups: GroupBy | RollingGroupBy, aggregates: Mapping[str, Aggregate]
) -> None:
    """Raise if the sum of a group of rows has more than 38 digits; mostly a look at all rows rules it out."""
    for name, aggregate in aggregates.items():
        kind = rows.schema[name]
        if isinstance(aggregate, Sum) and isinstance(kind, pl.Decimal):
            bound = 10.0 ** (_DIGITS - kind.scale)
            sizes = pl.col(name).cast(pl.Float64)
            if rows.select(sizes.abs().sum()).item() >= _NEAR * bound:
                _refuse_groups(name, groups.agg(sizes.sum().abs().alias("size"), pl.col(name)), kind.scale)


def _refuse_groups(name: str, groups: pl.DataFrame, scale: int) -> None:
    large = groups.filter(pl.col("size") >= _NEAR * 10.0 ** (_DIGITS - scale))
    for values in large[name].to_list():
        total = sum((Fraction(value) for value in values if value is not None), Fraction(0))
        if abs(total) >= 10 ** (_DIGITS - scale):
            raise DataError(
                f"the sum {name!r} has more than {_DIGITS} digits, of which {scale} are behind the point",
                hint="sum decimals of fewer digits, or cast the column to double",
            )
