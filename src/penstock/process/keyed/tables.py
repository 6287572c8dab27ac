"""Tables beside events: their changes go through the same state, which keeps the latest row of each key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import FlowError
from penstock.process.columns.names import ROW_MARKS, SOURCE
from penstock.process.columns.refusals import refuse_unlike
from penstock.process.state.pinned import ADDED, Pin, pinned
from penstock.process.wire.table_changes import is_gone, newest_of_one_partition

NOW = "_now"  # the event that has come, with its place; null where a table's row has
_VERSION, _ROW = "version", "row"


@dataclass(frozen=True)
class Tables:
    """Changes of tables by the names of their rows in the result; there may be none."""

    by: tuple[str, ...]
    changes: Mapping[str, DataFrame]

    def __post_init__(self) -> None:
        for name, table in self.changes.items():
            missing = [column for column in (*self.by, SOURCE) if column not in table.columns]
            if missing:
                raise FlowError(
                    f"the table {name!r} has no column {missing[0]!r}, but {', '.join(table.columns)}",
                    hint="a table beside recent events is read by the flow, and has the same key as they",
                )

    @property
    def names(self) -> list[str]:
        """The columns of the tables."""
        return list(self.changes)

    def beside(self, events: DataFrame, keys: Sequence[str]) -> DataFrame:
        """Return events and changes as one: each row has an event or one table's change."""
        if self.changes and SOURCE not in events.schema[NOW].dataType.names:  # type: ignore[attr-defined]
            raise FlowError(f"events beside tables have no {SOURCE!r}", hint="let a flow read them")
        for name, table in self.changes.items():
            for key, column in zip(keys, self.by, strict=True):
                refuse_unlike(column, events.schema[key].dataType, column, table.schema[column].dataType)
            named = [F.col(f"`{column}`").alias(key) for key, column in zip(keys, self.by, strict=True)]
            changed = table.select(*named, _change(table, self._pin(name)).alias(name))
            events = events.unionByName(changed, allowMissingColumns=True)
        return events

    def latest(self, keys: Sequence[str] | None = None) -> list[Column]:
        """The last change of each table so far; in a batch, of those that were written before the event."""
        if keys is None:
            return [F.max_by(name, F.col(name)[_VERSION]).alias(name) for name in self.names]
        written = [F.col(NOW)[SOURCE]["written"], *(F.col(name)["written"] for name in self.names)]
        so_far = Window.partitionBy(*keys).orderBy(F.coalesce(*written), F.col(NOW).isNotNull())
        return [self._checked(name, so_far).alias(name) for name in self.names]

    def _checked(self, name: str, so_far: WindowSpec) -> Column:
        """The last change; what came before in another partition can't be compared with it."""
        version = F.col(name)[_VERSION]
        newest = F.max_by(name, version).over(so_far)
        return newest_of_one_partition(newest, version["partition"], f"the table {name!r}", so_far)

    def rows(self) -> list[Column]:
        """The latest row of each table, null where there is none or it was deleted."""
        return [
            self._pin(name).whole(F.col(name)[_ROW], F.col(name)[ADDED]).alias(name) for name in self.names
        ]

    def _pin(self, name: str) -> Pin:
        table = self.changes[name]
        row = StructType([each for each in table.schema if each.name not in ROW_MARKS])
        pin = pinned(f"table {name}", row, streaming=table.isStreaming)
        pin.refuse_required(f"the table {name!r}")
        return pin


def _change(table: DataFrame, pin: Pin) -> Column:
    version = F.struct(*(F.col(SOURCE)[part].alias(part) for part in ("partition", "offset")))
    written = F.col(SOURCE)["written"].alias("written")
    row = F.when(~is_gone(table), F.struct(*pin.columns()))
    return F.struct(version.alias(_VERSION), written, row.alias(_ROW), *pin.beside())
