"""Views: what the events of a key come to, now and at any moment of the past."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.errors import ConfigurationError
from penstock.pipeline.projection import Projection
from penstock.sourcing.arguments import check_moment
from penstock.sourcing.fingerprint import fingerprint
from penstock.sourcing.totals import Total

Rows = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class View(Projection):
    """Totals by key over rows that are made of events.

        balances = View(
            by="account",
            columns={"balance": total("delta"), "changes": count()},
            rows=movements,
        )

    `rows` is a transformation of a category's records to rows with the columns of `by`, `time` and `order`,
    and those that the totals are of; the newest row of a key is that of the highest time and order. A view is
    a function of a DataFrame: make a flow of it, and it follows the stream; call it with a table, and it is
    what that comes to. `at`, `between` and `history` look into the past.
    """

    by: str | tuple[str, ...]
    columns: Mapping[str, Total] = field(hash=False)
    rows: Rows = lambda records: records
    time: str = "at"
    order: str = "version"

    def __post_init__(self) -> None:
        taken = {*self.keys} & {*self.columns}
        if taken or not self.keys or not self.columns:
            raise ConfigurationError(
                f"a view by {self.keys} of {sorted(self.columns)}",
                hint="give it a key and columns, with different names",
            )

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.by,) if isinstance(self.by, str) else tuple(self.by)

    def __call__(self, records: DataFrame) -> DataFrame:
        """Return the view over records: a row for each key."""
        return self.finished(self.state(records))

    def at(self, records: DataFrame, time: datetime) -> DataFrame:
        """Return the whole view as it was at a time: what happened until then, that moment included."""
        moment = F.lit(check_moment(time))
        return self.finished(self._added_up(self.rows(records).where(F.col(self.time) <= moment)))

    def between(self, records: DataFrame, before: datetime, after: datetime) -> DataFrame:
        """Return the keys whose rows differ between two times, with what they were and what they became."""
        return self.differences(self.at(records, before), self.at(records, after))

    def history(self, records: DataFrame, *key: object) -> DataFrame:
        """Return what each event made of one key's row, by time and order."""
        if len(key) != len(self.keys):
            raise ConfigurationError(f"a key of {self.keys} has {len(self.keys)} values, not {len(key)}")
        is_key = [F.col(name) == F.lit(value) for name, value in zip(self.keys, key, strict=True)]
        rows = self.rows(records).where(reduce(Column.__and__, is_key))
        passed = Window.partitionBy(*self.keys).orderBy(self.time, self.order)
        passed = passed.rangeBetween(
            Window.unboundedPreceding, Window.currentRow
        )  # equal ones count together
        shown = {
            name: total.finished(total.state(self._order).over(passed))
            for name, total in self.columns.items()
        }
        return rows.select(
            *self.keys, self.time, self.order, *(column.alias(name) for name, column in shown.items())
        ).orderBy(self.time, self.order)

    def differences(self, before: DataFrame, after: DataFrame) -> DataFrame:
        """Compare two versions of the view: rows that differ, or that only one of them has."""
        columns = list(self.columns)
        old = before.select(*self.keys, F.struct(*columns).alias("before"))
        new = after.select(*self.keys, F.struct(*columns).alias("after"))
        same = reduce(Column.__and__, (old[name].eqNullSafe(new[name]) for name in self.keys))
        keys = (F.coalesce(old[name], new[name]).alias(name) for name in self.keys)
        joined = old.join(new, same, "full").select(*keys, "before", "after")
        return joined.where(~F.col("before").eqNullSafe(F.col("after")))

    @property
    def tag(self) -> str:
        return fingerprint(self.rows, self.keys, dict(self.columns), self.time, self.order)

    def state(self, records: DataFrame) -> DataFrame:
        """Return what records come to, in a form that can be kept and merged."""
        return self._added_up(self.rows(records))

    def merged(self, states: DataFrame) -> DataFrame:
        """Merge several states of each key to one; sums of sums would get wider each time."""
        types = states.schema
        merged = (
            total.merged(F.col(name)).cast(types[name].dataType).alias(name)
            for name, total in self.columns.items()
        )
        return states.groupBy(*self.keys).agg(*merged)

    def continued(self, records: DataFrame, states: DataFrame) -> DataFrame:
        """Return the view over states and the records behind them, each of which is a small state."""
        types = states.schema
        single = (
            total.single(self._order).cast(types[name].dataType).alias(name)
            for name, total in self.columns.items()
        )
        rows = self.rows(records).select(*self.keys, *single)
        return self.finished(self.merged(rows.unionByName(states)))

    def finished(self, state: DataFrame) -> DataFrame:
        """Return the rows of the view that a state comes to."""
        values = (total.finished(F.col(name)).alias(name) for name, total in self.columns.items())
        return state.select(*self.keys, *values)

    def _added_up(self, rows: DataFrame) -> DataFrame:
        states = (total.state(self._order).alias(name) for name, total in self.columns.items())
        return rows.groupBy(*self.keys).agg(*states)

    @property
    def _order(self) -> Column:
        return F.struct(self.time, self.order)
