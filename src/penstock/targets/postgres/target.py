"""A table of PostgreSQL as a target."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.settings import Settings
from penstock.targets.compared import Compared
from penstock.targets.postgres.comparison import compare_table
from penstock.targets.postgres.contents import contents
from penstock.targets.postgres.sink import PostgresSink
from penstock.targets.postgres.swap import column_names, remove, swap
from penstock.targets.postgres.table import DeclaredTable
from penstock.targets.sink import SinkOptions
from penstock.targets.target import Guarantee, Inspection, Target

_POINTS = ("opened", "staged", "before-merge", "merged", "committed")


@dataclass(frozen=True)
class PostgresTable(DeclaredTable, Target):
    """A table of PostgreSQL and the way rows get into it.

    >>> PostgresTable("alerts", key="card", write="upsert").keys
    ('card',)

    "upsert" keeps the last row of each key. "append" adds every row; the key then only says which rows stay
    in order, and the column `id`, if there is one, is the primary key. `repeated` says what becomes of a row
    to append whose id is there already, as after a real-time flow was killed: "skip" leaves it out, "refuse"
    stops the flow. `columns` are those of the results that the table gets; all of them by default. The
    database is that of the settings' `connection`, or at `dsn`, or settings.postgres by default.
    """

    crash_points: ClassVar[tuple[str, ...]] = tuple(f"sink.postgres.{name}" for name in _POINTS)

    keeps_former: ClassVar[bool] = True

    @property
    def upsert_key(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.keys if self.write == "upsert" else ()

    def may_repeat(self, guarantee: Guarantee) -> bool:
        """A row is known by its key or id, whatever the guarantee."""
        return False

    def sink(self, schema: StructType, options: SinkOptions) -> PostgresSink:
        return PostgresSink(self, schema, options)

    def beside(self, name: str) -> Self:
        """Return a table with the same columns, indexes and constraints, which is empty."""
        return replace(self, name=f"{self.name}__{name}", like=self.name)

    def swap(self, rebuilt: Self, settings: Settings) -> None:
        """Rename, in one transaction; where views or the like refer to the table, replace its rows."""
        swap(self, rebuilt, settings)

    def exchange(self, other: Self, kept: Self, settings: Settings) -> None:
        """Rename both, in one transaction."""
        swap(self, other, settings, kept)

    def remove(self, settings: Settings) -> bool:
        remove(self, settings)
        return True

    def held_columns(self, settings: Settings) -> tuple[str, ...]:
        return column_names(self, settings)

    def contents(self, spark: SparkSession, schema: StructType, inspection: Inspection) -> DataFrame:
        return contents(spark, self, inspection.settings, schema)

    def compare(self, due: DataFrame, inspection: Inspection) -> Compared:
        """Compare in the database."""
        return compare_table(self, due, inspection.settings, inspection.flow)
