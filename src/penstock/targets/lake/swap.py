"""A rebuilt table put in the place of the live one: its files and its ledger, in one commit."""

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.parquet as pq

from penstock.errors import SinkError, TargetError
from penstock.log.ledger import Entry
from penstock.targets.lake.contents import active_files
from penstock.targets.lake.delta import ConflictError, asking, is_table, load, properties
from penstock.targets.lake.ledger import FOLDER, Ledger, Note, epoch_of, link
from penstock.targets.lake.prepared import prepare, spark_schema
from penstock.targets.lake.statistics import PROPERTY, known_columns, statistics_of
from penstock.targets.lake.table import DeclaredTable

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

SWAP = "penstock.swap"  # the application whose number says which rebuilt table came last
_TRIES = 10


def swap(live: DeclaredTable, rebuilt: DeclaredTable) -> None:
    """Make a rebuilt table's contents the live one's; called again, it completes what was begun."""
    removed = rebuilt.root.with_name(f"{rebuilt.root.name}.swapped")
    if is_table(rebuilt.root):
        _swap(live, rebuilt)
        shutil.rmtree(removed, ignore_errors=True)
        rebuilt.root.rename(removed)
    elif not (is_table(live.root) and load(live.root).transaction_version(SWAP)):
        raise TargetError(f"there is no table at {rebuilt.path!r}", hint="rebuild the flow into it first")
    shutil.rmtree(removed, ignore_errors=True)


def _swap(live: DeclaredTable, rebuilt: DeclaredTable) -> None:
    new = load(rebuilt.root)
    if not is_table(live.root):
        prepare(live, spark_schema(new))
    for _ in range(_TRIES):
        old = load(live.root)
        if old.transaction_version(SWAP) == _number(new):
            return
        try:
            _commit(live.root, old, rebuilt.root, new)
        except ConflictError:
            continue
        return
    raise SinkError(
        f"table {live.path!r} is written all the time", hint="stop what writes it, and swap again"
    )


def _commit(root: Path, old: "DeltaTable", other: Path, new: "DeltaTable") -> None:
    """Link the files into the live table's folder and commit them in the place of all others."""
    partitions = new.metadata().partition_columns
    if partitions != old.metadata().partition_columns:
        raise TargetError(
            f"table {str(root)!r} is partitioned by {old.metadata().partition_columns!r}, "
            f"the rebuilt one by {partitions!r}",
            hint="give the flow a table of another path",
        )
    with asking("put a rebuilt table in its place", root):
        _allow_times_without_zone(old, new)
        bounded = _agree_on_bounds(old, new)
        added: list[AddAction | RemoveAction] = [
            _linked(root, other, each, bounded) for each in active_files(new)
        ]
        carried = {SWAP: _number(new), **_carried(root, old, other, new)}
        committed = properties(carried, retries=0)
        schema = new.schema()
        old.create_write_transaction(added, "overwrite", schema, partitions, commit_properties=committed)


def _linked(root: Path, other: Path, file: dict[str, Any], bounded: Sequence[str]) -> "AddAction":
    from deltalake.transaction import AddAction

    name = file["path"]
    if not (root / name).exists():
        link(other / name, root / name)
    os.utime(root / name)
    known = pq.read_metadata(root / name)
    values = {key: None if value is None else _text(value) for key, value in file["partition"].items()}
    size, now = (root / name).stat().st_size, int(time.time() * 1000)
    return AddAction(name, size, values, now, True, statistics_of(known, bounded))


def _carried(root: Path, old: "DeltaTable", other: Path, new: "DeltaTable") -> dict[str, int]:
    """Copy the ledgers of the rebuilt table, in a new epoch: whoever writes either table is shut out."""
    carried = {}
    for sink in _sinks(other):
        _, entry = Ledger(other, sink).read(new)
        last = old.transaction_version(sink)
        epoch = max(entry.epoch, 0 if last is None else epoch_of(last)) + 1
        carried[sink] = Ledger(root, sink).write(Entry(epoch, entry.batch))
    return carried


def _sinks(root: Path) -> set[str]:
    files = (root / FOLDER).glob("*/*.json")
    return {msgspec.json.decode(file.read_bytes(), type=Note).sink for file in files}


def _allow_times_without_zone(old: "DeltaTable", new: "DeltaTable") -> None:
    """Give the live table the one feature that a column's type may ask for; an overwrite would not."""
    from deltalake import TableFeatures

    if "timestampNtz" in (new.protocol().writer_features or ()) and "timestampNtz" not in (
        old.protocol().writer_features or ()
    ):
        ntz = [TableFeatures.TimestampWithoutTimezone]
        old.alter.add_feature(ntz, allow_protocol_versions_increase=True)
        old.update_incremental()


def _agree_on_bounds(old: "DeltaTable", new: "DeltaTable") -> tuple[str, ...]:
    """Return the columns that have bounds in both tables; the live one asks for no others from now on."""
    asked = known_columns(old.metadata().configuration, spark_schema(old))
    fit = tuple(
        name for name in known_columns(new.metadata().configuration, spark_schema(new)) if name in asked
    )
    if fit != asked:
        old.alter.set_table_properties({PROPERTY: ",".join(fit)})
        old.update_incremental()
    return fit


def _text(value: object) -> str:
    """Return a partition's value as Delta writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(table: "DeltaTable") -> int:
    """Return a number for a table that no other has."""
    return int(str(table.metadata().id).replace("-", ""), 16) >> 66
