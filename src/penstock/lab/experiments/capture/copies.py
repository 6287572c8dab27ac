"""The copies of the table: a search index, a cache in Redis and a lake table, each with its position."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from penstock.lab.experiments.capture.feed import Change
from penstock.log.ledger import Batch, Entry
from penstock.settings import Secret
from penstock.targets import LakeTable, SearchIndex
from penstock.targets.lake.prepared import prepare
from penstock.targets.redis.client import connect
from penstock.targets.search.description import Description
from penstock.targets.search.lane import SearchLanes

_ROW = pa.schema([("id", pa.int32()), ("name", pa.string()), ("price", pa.string()), ("version", pa.int64())])
_TYPES = {"id": IntegerType(), "name": StringType(), "price": StringType(), "version": LongType()}
_COLUMNS = StructType([StructField(name, kind) for name, kind in _TYPES.items()])
_TIMEOUT = 5.0


class Copy(Protocol):
    """A copy that takes changes, the last of each row, and is read by its own system's reader."""

    def write(self, changes: Sequence[Change]) -> None:
        """Take changes in; readers see them when this returns."""

    def versions(self) -> dict[int, int]:
        """Return the version of each row, as a reader sees it."""

    def close(self) -> None: ...


class IndexCopy:
    """A full-text index, written as a `SearchIndex` is: rows and the ledger's entry in one commit."""

    def __init__(self, path: Path) -> None:
        self._index = SearchIndex(path, key="id", text="name")
        described = Description.of(self._index.place, _COLUMNS, ("id",), ("name",), "words")
        lanes = SearchLanes(self._index.place, described, "lab", timedelta(seconds=10))
        lanes.prepare(1)
        self._lane, self._batch = lanes.open(0), 0

    def write(self, changes: Sequence[Change]) -> None:
        entry = Entry(1, Batch("lab", self._batch))
        self._lane.write(table_of(changes).to_batches(), entry)
        self._batch += 1

    def versions(self) -> dict[int, int]:
        return {row["id"]: row["version"] for row in self._index.search("*", limit=10_000)}

    def close(self) -> None:
        self._lane.close()


class CacheCopy:
    """Hashes in Redis; those of a batch are written in one transaction."""

    def __init__(self, address: Secret, prefix: str) -> None:
        self._client, self._prefix = connect(address, _TIMEOUT), prefix

    def write(self, changes: Sequence[Change]) -> None:
        work = self._client.pipeline(transaction=True)
        for each in changes:
            held = {"name": each.name, "price": each.price, "version": each.version}
            work.hset(f"{self._prefix}:{each.id}", mapping=held)
        work.execute()

    def put(self, id: int, version: int, price: str) -> int:
        """Write one row by itself, as an application does; return the version that was there."""
        work = self._client.pipeline(transaction=True)
        work.hget(f"{self._prefix}:{id}", "version")
        work.hset(f"{self._prefix}:{id}", mapping={"price": price, "version": version})
        return int(work.execute()[0] or 0)

    def versions(self) -> dict[int, int]:
        keys = list(self._client.scan_iter(f"{self._prefix}:*", count=1_000))
        asked = self._client.pipeline(transaction=False)
        for key in keys:
            asked.hget(key, "version")
        return {
            int(key.rpartition(b":")[2]): int(held) for key, held in zip(keys, asked.execute(), strict=True)
        }

    def remove(self) -> None:
        """Remove all rows."""
        keys = list(self._client.scan_iter(f"{self._prefix}:*", count=1_000))
        if keys:
            self._client.delete(*keys)

    def close(self) -> None:
        with suppress(OSError):
            self._client.close()


class LakeCopy:
    """A Delta table, into which each batch is merged by key in one commit."""

    def __init__(self, path: Path) -> None:
        declared = LakeTable(str(path), key="id", write="upsert")
        self._path, self._table = str(path), prepare(declared, _COLUMNS)

    def write(self, changes: Sequence[Change]) -> None:
        row: dict[str, Any] = {name: f"s.{name}" for name in _ROW.names}
        merging = self._table.merge(table_of(changes), "t.id = s.id", "s", "t")
        merging.when_matched_update(row).when_not_matched_insert(row).execute()

    def versions(self) -> dict[int, int]:
        from deltalake import DeltaTable

        read = DeltaTable(self._path).to_pyarrow_table(columns=["id", "version"]).to_pydict()
        return dict(zip(read["id"], read["version"], strict=True))

    def close(self) -> None:
        """Nothing is held."""


def table_of(changes: Sequence[Change]) -> pa.Table:
    """Return the last change of each row as a table."""
    last = {each.id: each for each in changes}
    rows = [{"id": e.id, "name": e.name, "price": e.price, "version": e.version} for e in last.values()]
    return pa.Table.from_pylist(rows, schema=_ROW)
