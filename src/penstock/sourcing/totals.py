"""What a view may say of a key: totals that can be added up in parts, so that a part can be kept."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

Kind = Literal["sum", "count", "min", "max", "latest"]
_STATE: dict[Kind, Callable[[Column, Column], Column]] = {
    "sum": lambda value, _: F.sum(value),
    "count": lambda value, _: F.count(value),
    "min": lambda value, _: F.min(value),
    "max": lambda value, _: F.max(value),
    # Null is a value, too: a struct is compared by its order first, and it is never null itself.
    "latest": lambda value, order: F.max(F.struct(order.alias("order"), value.alias("value"))),
}


@dataclass(frozen=True)
class Total:
    """One column of a view: how a column of rows comes to one value of a key."""

    kind: Kind
    column: str | None = None

    @property
    def value(self) -> Column:
        return F.lit(1) if self.column is None else F.expr(self.column)

    def state(self, order: Column) -> Column:
        """Aggregate rows; what it gives can be kept, and merged with what comes later."""
        return _STATE[self.kind](self.value, order)

    def single(self, order: Column) -> Column:
        """The state that one row comes to."""
        match self.kind:
            case "count":
                return self.value.isNotNull().cast("long")
            case "latest":
                return F.struct(order.alias("order"), self.value.alias("value"))
            case _:
                return self.value

    def merged(self, state: Column) -> Column:
        """Merge states of one key."""
        return F.sum(state) if self.kind in ("sum", "count") else _extreme(self.kind)(state)

    def finished(self, state: Column) -> Column:
        """The value that a state comes to."""
        return state["value"] if self.kind == "latest" else state


def _extreme(kind: Kind) -> Callable[[Column], Column]:
    return F.min if kind == "min" else F.max


def total(column: str) -> Total:
    """The sum of a column, or of an SQL expression over columns."""
    return Total("sum", column)


def count(column: str | None = None) -> Total:
    """How many rows there are, or how many in which a column is not null."""
    return Total("count", column)


def smallest(column: str) -> Total:
    """The least value of a column that there has been."""
    return Total("min", column)


def largest(column: str) -> Total:
    """The greatest value of a column that there has been."""
    return Total("max", column)


def latest(column: str) -> Total:
    """The value in the newest row, by the view's order."""
    return Total("latest", column)
