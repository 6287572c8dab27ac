"""What becomes of staged files in a commit: they are added to the table, or merged into it by key."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds

from penstock.targets.lake.columns import DELETED
from penstock.targets.lake.files import StagedFile

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_IN_MEMORY = 32 << 20  # bytes of staged files, up to which their keys' bounds leave files of the table out


def commit_nothing(delta: "DeltaTable", properties: "CommitProperties") -> None:
    """Commit what the properties carry, without rows."""
    append(delta, (), properties)


def append(delta: "DeltaTable", files: Sequence[StagedFile], properties: "CommitProperties") -> None:
    """Make files, which are in the table's folder, part of the table."""
    from deltalake.transaction import AddAction, RemoveAction

    now = int(time.time() * 1000)
    added: list[AddAction | RemoveAction] = [
        AddAction(each.name, each.size, each.values(), now, True, each.statistics) for each in files
    ]
    partitions = delta.metadata().partition_columns
    schema = delta.schema()
    delta.create_write_transaction(added, "append", schema, partitions, commit_properties=properties)


@dataclass(frozen=True)
class Merge:
    """A merge by key: a row replaces the one of its key, or deletes it."""

    keys: tuple[str, ...]
    names: tuple[str, ...]
    deletes: bool

    def run(
        self,
        delta: "DeltaTable",
        files: Sequence[Path],
        properties: "CommitProperties",
        number: tuple[str, int],
    ) -> None:
        """Merge files in one commit; where nothing is to be changed, delta-rs makes none, and we do."""
        source = ds.dataset([str(path) for path in files], format="parquet").scanner().to_reader()
        streamed = sum(path.stat().st_size for path in files) > _IN_MEMORY
        merging = delta.merge(
            source, self._predicate(), "s", "t", streamed_exec=streamed, commit_properties=properties
        )
        values = {_quoted(name): f"s.{_quoted(name)}" for name in self.names}
        deleted = f"s.{_quoted(DELETED)}"
        if self.deletes:
            merging = merging.when_matched_delete(deleted)
        merging = merging.when_matched_update(values)
        merging.when_not_matched_insert(values, f"NOT {deleted}" if self.deletes else None).execute()
        sink, expected = number
        if delta.transaction_version(sink) != expected:
            commit_nothing(delta, properties)

    def _predicate(self) -> str:
        return " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in self.keys)


def _quoted(name: str) -> str:
    return f'"{name}"'  # no column has a quote in its name
