"""The aggregates of windows with a late policy: how each begins with rows, is merged, and ends as a value.

All three are expressions over the rows of a group: a batch costs as much as its columns, not its keys.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import log
from typing import ClassVar

import polars as pl
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    MapType,
    NumericType,
    StructType,
    VariantType,
)  # fmt: skip

from penstock.errors import FlowError
from penstock.process.columns.names import ORDER

_REGISTERS = 4096  # of an approximate count: its error is 1.04 / √4096, or 1.6 %
_TERMS = 20  # of a series over the share of free registers, which is 4095/4096 at most: the rest is nothing


@dataclass(frozen=True)
class Aggregate(ABC):
    """One aggregate over the rows of a window; `column` is what it looks at, if it looks at one."""

    wide: ClassVar[bool] = False  # whether whole numbers are taken in as 128 bits
    ordered: ClassVar[bool] = False  # whether it looks at the order of events
    column: str | None = None

    @abstractmethod
    def type(self, input: DataType) -> DataType:
        """The type of the value, for a column of the input's type."""

    @abstractmethod
    def start(self, name: str) -> pl.Expr:
        """What is kept of rows whose column is called `name`."""

    @abstractmethod
    def merge(self, name: str) -> pl.Expr:
        """What is kept of several kept ones, which are in the column `name`."""

    def finish(self, name: str) -> pl.Expr:
        """The value that the kept one stands for."""
        return pl.col(name)

    @property
    def description(self) -> str:
        """What it is, in words: state of one is no use to another."""
        return f"{type(self).__name__} {self.column}"

    def input(self, value: Column, input: DataType) -> Column:  # noqa: ARG002
        """What is taken in of a value of the column, as Spark computes it."""
        return value


class Count(Aggregate):
    def type(self, input: DataType) -> DataType:  # noqa: ARG002
        return LongType()

    def start(self, name: str) -> pl.Expr:
        return pl.col(name).count().cast(pl.Int64)

    def merge(self, name: str) -> pl.Expr:
        return pl.col(name).sum()


class Sum(Aggregate):
    """Whole numbers are summed in 128 bits, so that a sum beyond a long is noticed when it is asked for."""

    wide = True

    def type(self, input: DataType) -> DataType:
        if isinstance(input, DecimalType):
            return DecimalType(min(38, input.precision + 10), input.scale)
        _demand(input, NumericType, "sum", self.column)
        return LongType() if isinstance(input, IntegralType) else DoubleType()

    def start(self, name: str) -> pl.Expr:
        return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())

    def merge(self, name: str) -> pl.Expr:
        return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())

    def input(self, value: Column, input: DataType) -> Column:
        if isinstance(input, IntegralType):
            return value.cast("long")
        return value.cast("double") if isinstance(input, FloatType) else value


class Average(Aggregate):
    wide = True

    def type(self, input: DataType) -> DataType:
        _demand(input, NumericType, "avg", self.column)
        return DoubleType()

    def start(self, name: str) -> pl.Expr:
        return pl.struct(pl.col(name).sum().alias("sum"), pl.col(name).count().cast(pl.Int64).alias("count"))

    def merge(self, name: str) -> pl.Expr:
        parts = pl.col(name).struct
        return pl.struct(parts.field("sum").sum(), parts.field("count").sum())

    def finish(self, name: str) -> pl.Expr:
        total, count = (pl.col(name).struct.field(part) for part in ("sum", "count"))
        return pl.when(count > 0).then(total.cast(pl.Float64) / count)

    def input(self, value: Column, input: DataType) -> Column:
        return value.cast("long" if isinstance(input, IntegralType) else "double")


class Min(Aggregate):
    """The smallest value; not a number is greater than all numbers, as it is for Spark."""

    def type(self, input: DataType) -> DataType:
        _demand_order(input, "min", self.column)
        return input

    def start(self, name: str) -> pl.Expr:
        return pl.col(name).min()

    merge = start


class Max(Aggregate):
    """The largest value; not a number is greater than all numbers, as it is for Spark."""

    def type(self, input: DataType) -> DataType:
        _demand_order(input, "max", self.column)
        return input

    def start(self, name: str) -> pl.Expr:
        return pl.col(name).nan_max()

    merge = start


class Distinct(Aggregate):
    """An exact count, which keeps every value that it has seen."""

    def type(self, input: DataType) -> DataType:
        _demand_equality(input, "distinct", self.column)
        return LongType()

    def start(self, name: str) -> pl.Expr:
        return pl.col(name).drop_nulls().unique()

    def merge(self, name: str) -> pl.Expr:
        return pl.col(name).explode().drop_nulls().unique()

    def finish(self, name: str) -> pl.Expr:
        return pl.col(name).list.len().cast(pl.Int64)


class AboutDistinct(Aggregate):
    """An approximate count (HyperLogLog): 4,096 registers at most, whatever it has seen.

    A register is kept as its number · 64 + its rank, the length of the longest run of zeros. The estimate is
    Ertl's (arXiv:1702.01284), which is as good for few values and for many.
    """

    def type(self, input: DataType) -> DataType:
        _demand_equality(input, "distinct", self.column)
        return LongType()

    def start(self, name: str) -> pl.Expr:
        hashed = pl.col(name).drop_nulls()
        number, rest = hashed & (_REGISTERS - 1), (hashed // _REGISTERS) & (2**50 - 1)
        rank = 51 - pl.when(rest > 0).then(rest.log(2).floor() + 1).otherwise(0).cast(pl.Int64)
        return _highest(number * 64 + rank)

    def merge(self, name: str) -> pl.Expr:
        return _highest(pl.col(name).explode().drop_nulls())

    def finish(self, name: str) -> pl.Expr:
        taken = pl.col(name).list.len().cast(pl.Float64)
        harmonic = pl.col(name).list.eval(0.5 ** (pl.element() % 64)).list.sum()
        unseen = _REGISTERS * _sigma(1 - taken / _REGISTERS)
        estimate = _REGISTERS**2 / (2 * log(2)) / (harmonic + unseen)
        return pl.when(taken > 0).then(estimate).otherwise(0).round().cast(pl.Int64)

    def input(self, value: Column, input: DataType) -> Column:  # noqa: ARG002
        return F.when(value.isNotNull(), F.xxhash64(value))  # the same in every version, unlike Polars'


class First(Aggregate):
    """The value of the earliest event; of equal times the first in the log."""

    ordered = True

    def type(self, input: DataType) -> DataType:
        return input

    def start(self, name: str) -> pl.Expr:
        return _placed(name).sort().first()

    def merge(self, name: str) -> pl.Expr:
        return pl.col(name).sort().first()

    def finish(self, name: str) -> pl.Expr:
        return pl.col(name).struct.field("value")


class Last(First):
    """The value of the latest event; of equal times the last in the log."""

    def start(self, name: str) -> pl.Expr:
        return _placed(name).sort().last()

    def merge(self, name: str) -> pl.Expr:
        return pl.col(name).sort().last()


class Collect(Aggregate):
    """All values in the order of their times; of equal times in the log's."""

    ordered = True

    def type(self, input: DataType) -> DataType:
        return ArrayType(input)

    def start(self, name: str) -> pl.Expr:
        return _placed(name).sort()

    def merge(self, name: str) -> pl.Expr:
        return pl.col(name).explode().sort()

    def finish(self, name: str) -> pl.Expr:
        return pl.col(name).list.eval(pl.element().struct.field("value"))


@dataclass(frozen=True)
class Percentile(Aggregate):
    """An exact percentile, interpolated, which keeps every value that it has seen."""

    share: float = 0.5

    def type(self, input: DataType) -> DataType:
        _demand(input, NumericType, "percentile", self.column)
        return DoubleType()

    def start(self, name: str) -> pl.Expr:
        return pl.col(name).drop_nulls().sort()

    def merge(self, name: str) -> pl.Expr:
        return pl.col(name).explode().drop_nulls().sort()

    def finish(self, name: str) -> pl.Expr:
        return pl.col(name).list.eval(pl.element().quantile(self.share, "linear")).list.first()

    def input(self, value: Column, input: DataType) -> Column:  # noqa: ARG002
        return value.cast("double")


@dataclass(frozen=True)
class Top(Aggregate):
    """The largest values, the largest first."""

    count: int = 10

    def type(self, input: DataType) -> DataType:
        _demand_order(input, "top", self.column)
        return ArrayType(input)

    def start(self, name: str) -> pl.Expr:
        return pl.col(name).drop_nulls().sort(descending=True).head(self.count)

    def merge(self, name: str) -> pl.Expr:
        return pl.col(name).explode().drop_nulls().sort(descending=True).head(self.count)


def _placed(name: str) -> pl.Expr:
    return pl.struct(*ORDER, pl.col(name).alias("value"))


def _highest(registers: pl.Expr) -> pl.Expr:
    """The highest rank of each register."""
    ordered = registers.unique().sort()
    return ordered.filter(ordered // 64 != (ordered // 64).shift(-1, fill_value=-1))


def _sigma(free: pl.Expr) -> pl.Expr:
    """What a share x of free registers adds to the harmonic sum: x + Σ x^(2^k) · 2^(k-1)."""
    return pl.sum_horizontal(free, *(free ** (2**k) * 2.0 ** (k - 1) for k in range(1, _TERMS)))


def _demand_order(input: DataType, what: str, column: str | None) -> None:
    if isinstance(input, ArrayType | MapType | StructType | VariantType):
        raise FlowError(
            f"{what} of {column!r}, which is {input.simpleString()}",
            hint="give it one of its fields or elements",
        )


def _demand_equality(input: DataType, what: str, column: str | None) -> None:
    if isinstance(input, MapType | VariantType):
        raise FlowError(f"{what} of {column!r}, which is {input.simpleString()}", hint="give it a part of it")


def _demand(input: DataType, kind: type[DataType], what: str, column: str | None) -> None:
    if not isinstance(input, kind):
        raise FlowError(f"{what} of {column!r}, which is {input.simpleString()}", hint="give it numbers")
