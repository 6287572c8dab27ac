"""The declared aggregates, as users name them: `agg.count()`, `agg.sum("amount")`."""

from penstock.errors import FlowError
from penstock.process.windows import aggregates
from penstock.process.windows.aggregates import Aggregate


def count(column: str | None = None) -> Aggregate:
    """How many events; with a column, how many in which it is not null."""
    return aggregates.Count(column)


def sum(column: str) -> Aggregate:
    """The sum; null if there is no value. One beyond 64 bits, or 38 digits of decimals, stops the flow."""
    return aggregates.Sum(column)


def avg(column: str) -> Aggregate:
    """The mean, as a double."""
    return aggregates.Average(column)


def min(column: str) -> Aggregate:
    """The smallest value; NaN is greater than all numbers. Not of structs, arrays or maps."""
    return aggregates.Min(column)


def max(column: str) -> Aggregate:
    """The largest value; NaN is greater than all numbers. Not of structs, arrays or maps."""
    return aggregates.Max(column)


def distinct(column: str, *, exact: bool = True) -> Aggregate:
    """How many different values; exactly, or within 1.6 % (one standard deviation) in 4,096 registers."""
    return aggregates.Distinct(column) if exact else aggregates.AboutDistinct(column)


def first(column: str) -> Aggregate:
    """The value of the earliest event."""
    return aggregates.First(column)


def last(column: str) -> Aggregate:
    """The value of the latest event."""
    return aggregates.Last(column)


def collect(column: str) -> Aggregate:
    """All values, in the order of their times."""
    return aggregates.Collect(column)


def percentile(column: str, share: float) -> Aggregate:
    """The value below which a share of the values is, interpolated: 0.5 is the median."""
    if not 0 <= share <= 1:
        raise FlowError(f"a percentile of {share}, expected a share from 0 to 1")
    return aggregates.Percentile(column, share)


def top(column: str, count: int) -> Aggregate:
    """The largest values, the largest first."""
    if count < 1:
        raise FlowError(f"the top {count}, expected at least 1")
    return aggregates.Top(column, count)
