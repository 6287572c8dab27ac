"""A Delta table as a target."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.settings import Settings
from penstock.targets.lake.contents import contents
from penstock.targets.lake.delta import check_installed
from penstock.targets.lake.sink import LakeSink
from penstock.targets.lake.swap import swap
from penstock.targets.lake.table import DeclaredTable
from penstock.targets.sink import SinkOptions
from penstock.targets.target import Inspection, Target

_POINTS = ("opened", "written", "staged", "before-commit", "committed")


@dataclass(frozen=True)
class LakeTable(DeclaredTable, Target):
    """A Delta table in a folder and the way rows get into it.

    >>> LakeTable("/data/alerts", key="card", write="upsert").keys
    ('card',)

    "upsert" keeps the last row of each key; "append" adds every row. `partition_by` names columns by whose
    values files are kept apart: texts, whole numbers, dates or booleans. `columns` are those of the results
    that the table gets; all of them by default. After every `compact` commits the sink makes one file of
    small ones (0: never), and removes files that were replaced longer ago than `retention`.
    """

    crash_points: ClassVar[tuple[str, ...]] = tuple(f"sink.lake.{name}" for name in _POINTS)

    @property
    def upsert_key(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.keys if self.write == "upsert" else ()

    def sink(self, schema: StructType, options: SinkOptions) -> LakeSink:
        return LakeSink(self, schema, options)

    def contents(self, spark: SparkSession, schema: StructType, inspection: Inspection) -> DataFrame:
        check_installed()
        return contents(spark, self, schema)

    def beside(self, name: str) -> Self:
        """Return a table beside this one, which is empty: a flow is rebuilt into it."""
        return replace(self, path=f"{self.path.rstrip('/')}__{name}")

    def swap(self, rebuilt: Self, settings: Settings) -> None:
        """Make what `rebuilt` holds this table's contents in one commit; readers at work keep their files."""
        check_installed()
        swap(self, rebuilt)
