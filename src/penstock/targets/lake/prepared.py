"""The Delta table: made for a flow's results, grown with them, or checked against them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from penstock.errors import SinkError, TargetError
from penstock.targets.lake.columns import plain
from penstock.targets.lake.delta import ConflictError, asking, is_table, load
from penstock.targets.lake.ledger import FOLDER
from penstock.targets.lake.statistics import PROPERTY, bounded_columns
from penstock.targets.lake.table import DeclaredTable

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema

_TRIES = 10
_FEATURES = {"timestampNtz", "appendOnly", "invariants"}  # of a writer's, those that are kept here
_RULES = ("delta.constraints.", "delta.columnMapping.mode", "delta.enableDeletionVectors")


def prepare(table: DeclaredTable, columns: StructType) -> "DeltaTable":
    """Make the table if it is missing, or see that it takes the columns; two processes may do so at once."""
    for _ in range(_TRIES):
        try:
            return _prepared(table, columns)
        except ConflictError:
            continue
    raise SinkError(f"table {table.path!r} is changed by somebody else all the time", hint="stop the other")


def spark_schema(delta: "DeltaTable") -> StructType:
    """Return a table's columns as Spark has them."""
    return StructType.fromJson(json.loads(delta.schema().to_json()))


def delta_schema(columns: StructType) -> "Schema":
    """Return columns as Delta has them, which writes them down as Spark does."""
    from deltalake import Schema

    return Schema.from_json(columns.json())


def _prepared(table: DeclaredTable, columns: StructType) -> "DeltaTable":
    if not is_table(table.root):
        _create(table, columns)
    delta = load(table.root)
    _check_rules(table, delta)
    _check_partitions(table, delta)
    _grow(table, delta, columns)
    return load(table.root)


def _create(table: DeclaredTable, columns: StructType) -> None:
    from deltalake import DeltaTable

    _check_empty(table.root)
    with asking("make the table", table.root):
        table.root.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(
            str(table.root),
            delta_schema(columns),
            mode="ignore",
            partition_by=list(table.partitions),
            configuration={PROPERTY: ",".join(bounded_columns(columns, table.partitions))},
        )


def _check_empty(root: Path) -> None:
    """Refuse a folder with other files: a table's vacuum removes what is not its own."""
    others = (
        [each.name for each in root.iterdir() if each.name not in (FOLDER, "_delta_log")]
        if root.exists()
        else []
    )
    if others:
        raise TargetError(
            f"{str(root)!r} holds {min(others)!r} and is not a Delta table", hint="name a folder of its own"
        )


def _check_rules(table: DeclaredTable, delta: "DeltaTable") -> None:
    """Refuse a table with rules that files which are added to it might break."""
    features = set(delta.protocol().writer_features or ()) - _FEATURES
    set_rules = [name for name in delta.metadata().configuration if name.startswith(_RULES)]
    needed = [field.name for field in spark_schema(delta) if not field.nullable]
    for what, names in (("feature", sorted(features)), ("rule", set_rules), ("column NOT NULL", needed)):
        if names:
            raise TargetError(
                f"table {table.path!r} has the {what} {names[0]!r}, which is not kept here",
                hint="write to another table, or drop it there",
            )


def _check_partitions(table: DeclaredTable, delta: "DeltaTable") -> None:
    seen = tuple(delta.metadata().partition_columns)
    if seen != table.partitions:
        raise TargetError(
            f"table {table.path!r} is partitioned by {seen!r}, the flow wants {table.partitions!r}",
            hint="give partition_by= as the table has it, or rebuild into another table",
        )


def _grow(table: DeclaredTable, delta: "DeltaTable", columns: StructType) -> None:
    """Add the columns that are new in the flow; refuse those that are different."""
    there = {field.name: plain(field.dataType) for field in spark_schema(delta)}
    folded = {name.lower(): name for name in there}
    for field in columns:
        seen = there.get(field.name)
        if seen is not None and seen != field.dataType:
            raise TargetError(
                f"table {table.path!r} has column {field.name!r} of type {seen.simpleString()}, "
                f"the flow needs {field.dataType.simpleString()}",
                hint="cast it in the flow, or write to another table",
            )
        if folded.get(field.name.lower(), field.name) != field.name:
            raise TargetError(
                f"table {table.path!r} has {folded[field.name.lower()]!r}, the flow has {field.name!r}",
                hint="names that differ in case only are one to Delta: rename it in the flow",
            )
    added = StructType([field for field in columns if field.name not in there])
    if added.fields:
        with asking("add columns", table.root):
            delta.alter.add_columns(delta_schema(added).fields)
