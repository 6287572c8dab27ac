"""What a replica's database knows of it: its tables and positions, moved with the rows, by one writer."""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from penstock.capture.tables import Connection
from penstock.errors import FencedError, ReplicaError, ReplicaHeldError
from penstock.replica.replica import Replica

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('penstock', 0))"
_TABLES = """
CREATE SCHEMA IF NOT EXISTS penstock;
CREATE TABLE IF NOT EXISTS penstock.replicas (
    name text PRIMARY KEY,
    capture text NOT NULL,
    schema text NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    process text NOT NULL DEFAULT '',
    state text NOT NULL DEFAULT 'added',
    error text NOT NULL DEFAULT '',
    at timestamptz NOT NULL DEFAULT now(),
    fresh timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS penstock.replica_tables (
    replica text REFERENCES penstock.replicas ON DELETE CASCADE,
    path text,
    schema text NOT NULL,
    name text NOT NULL,
    oid oid NOT NULL,
    columns jsonb NOT NULL,
    PRIMARY KEY (replica, path),
    UNIQUE (schema, name)
);
CREATE TABLE IF NOT EXISTS penstock.replica_positions (
    replica text REFERENCES penstock.replicas ON DELETE CASCADE,
    topic text,
    partition integer,
    topic_id text NOT NULL,
    next_offset bigint NOT NULL,
    seen timestamptz,
    PRIMARY KEY (replica, topic, partition)
);
"""
_HOLD = "SELECT pg_try_advisory_lock(hashtextextended('penstock.replica:' || %s, 0))"
_CLAIM = """
UPDATE penstock.replicas SET epoch = epoch + 1, process = %s, state = 'running', error = '', at = now()
WHERE name = %s RETURNING epoch, fresh
"""
_FENCE = "SELECT FROM penstock.replicas WHERE name = %s AND epoch = %s FOR NO KEY UPDATE"
_MOVE = """
UPDATE penstock.replica_positions SET next_offset = %s, seen = coalesce(%s, seen)
WHERE replica = %s AND topic = %s AND partition = %s AND next_offset = %s AND topic_id = %s
"""
_PATIENCE, _PAUSE = 10.0, 0.2  # seconds: PostgreSQL lets the lock of a killed process go within moments


@dataclass(frozen=True)
class Place:
    """Where a topic is read: its id, and the next offset of each partition."""

    topic: str
    id: str
    offsets: Mapping[int, int]


@dataclass(frozen=True)
class KnownTable:
    """A table of the copy as it was left: its number in the catalogue, and the types of its columns."""

    schema: str
    name: str
    oid: int
    columns: Mapping[str, str]
    key: tuple[str, ...]


class Ledger:
    """A replica's rows in the schema penstock of its database."""

    def __init__(self, connection: Connection, label: str) -> None:
        self.connection, self._label = connection, label
        self._epoch = 0
        self.fresh = datetime.now(UTC)  # all that was written to the log before this is in the copy

    def prepare(self) -> None:
        """Make the tables that are not there."""
        with self.connection.transaction():
            self.connection.execute(_LOCK)
            if not self.is_there():
                self.connection.execute(_TABLES)

    def is_there(self) -> bool:
        """Whether any replica has been in this database."""
        row = self.connection.execute("SELECT to_regclass('penstock.replica_positions') IS NOT NULL")
        return bool((row.fetchone() or [False])[0])

    def claim(self, replica: Replica) -> None:
        """Become the replica's writer, the only one; refuse to run another replica under its name."""
        self._hold()
        self.connection.execute(
            "INSERT INTO penstock.replicas (name, capture, schema) VALUES (%s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            [self._label, replica.capture, replica.schema],
        )
        known = self.declared(replica.connection)
        if known is not None and known != replica:
            raise ReplicaError(
                f"replica {replica.name!r} is of capture {known.capture!r} in schema {known.schema!r}",
                hint="give this one another name, or `penstock replica remove` that one",
            )
        process = f"{socket.gethostname()}/{os.getpid()}"
        row = self.connection.execute(_CLAIM, [process, self._label]).fetchone()
        self._epoch, self.fresh = row or (0, self.fresh)

    def _hold(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not (self.connection.execute(_HOLD, [self._label]).fetchone() or [False])[0]:
            if time.monotonic() > deadline:
                raise ReplicaHeldError(
                    f"replica {self._label!r} runs already: {self._holder()}", hint="stop that one first"
                )
            time.sleep(_PAUSE)

    def is_held(self) -> bool:
        """Whether a process runs the replica."""
        query = """
            SELECT FROM pg_locks, (SELECT hashtextextended('penstock.replica:' || %s, 0) AS key) k
            WHERE locktype = 'advisory' AND granted AND objsubid = 1
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
              AND (classid::int8 << 32 | objid::int8) = k.key
        """
        return self.connection.execute(query, [self._label]).fetchone() is not None

    def _holder(self) -> str:
        query = "SELECT process FROM penstock.replicas WHERE name = %s"
        row = self.connection.execute(query, [self._label]).fetchone()
        return f"process {row[0]}" if row and row[0] else "by another process"

    def declared(self, connection: str | None = None) -> Replica | None:
        """Return the replica as it was first run."""
        query = "SELECT capture, schema FROM penstock.replicas WHERE name = %s"
        row = self.connection.execute(query, [self._label]).fetchone()
        name = self._label.rpartition(":")[2]
        return None if row is None else Replica(name, row[0], connection, row[1])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Open a transaction in which nobody else writes to the copy; one that was replaced is refused."""
        with self.connection.transaction():
            if self.connection.execute(_FENCE, [self._label, self._epoch]).fetchone() is None:
                raise FencedError(
                    f"another process has taken over replica {self._label!r}", hint="leave it to that one"
                )
            yield

    def move(self, place: Place, to: Mapping[int, int], seen: int = 0) -> None:
        """Move a topic's positions, which have to be where this writer has left them."""
        at = datetime.fromtimestamp(seen / 1e6, UTC) if seen else None
        for partition, end in to.items():
            before = place.offsets[partition]
            if end == before:
                continue
            row = [end, at, self._label, place.topic, partition, before, place.id]
            if self.connection.execute(_MOVE, row).rowcount != 1:
                raise FencedError(
                    f"the position of {place.topic}[{partition}] is not {before}, where this process left it",
                    hint="another process has taken over, or somebody changed penstock.replica_positions",
                )

    def places(self) -> dict[str, Place]:
        """Return the positions by topic."""
        query = """
            SELECT topic, topic_id, json_object_agg(partition, next_offset)::text
            FROM penstock.replica_positions WHERE replica = %s GROUP BY topic, topic_id
        """
        return {
            topic: Place(topic, id, msgspec.json.decode(offsets, type=dict[int, int]))
            for topic, id, offsets in self.connection.execute(query, [self._label])
        }

    def begin(self, place: Place) -> None:
        """Write down where a topic is first read."""
        for partition, offset in place.offsets.items():
            self.connection.execute(
                "INSERT INTO penstock.replica_positions (replica, topic, partition, topic_id, next_offset) "
                "VALUES (%s, %s, %s, %s, %s)",
                [self._label, place.topic, partition, place.id, offset],
            )

    def forget_places(self) -> None:
        """Forget all positions: what the log has is read from its beginning."""
        self.connection.execute("DELETE FROM penstock.replica_positions WHERE replica = %s", [self._label])
        query = "UPDATE penstock.replicas SET fresh = now() WHERE name = %s RETURNING fresh"
        row = self.connection.execute(query, [self._label]).fetchone()
        self.fresh = row[0] if row else self.fresh

    def tables(self) -> dict[str, KnownTable]:
        """Return the tables that the replica has made, by their paths in the source."""
        query = (
            "SELECT path, schema, name, oid::int8, columns FROM penstock.replica_tables WHERE replica = %s"
        )
        return {
            path: KnownTable(schema, name, oid, columns["types"], tuple(columns["key"]))
            for path, schema, name, oid, columns in self.connection.execute(query, [self._label])
        }

    def keep_table(self, path: str, table: KnownTable) -> None:
        """Write down how a table of the copy is now."""
        columns = msgspec.json.encode({"types": table.columns, "key": table.key}).decode()
        self.connection.execute(
            "INSERT INTO penstock.replica_tables (replica, path, schema, name, oid, columns) "
            "VALUES (%s, %s, %s, %s, %s::int8::oid, %s::jsonb) "
            "ON CONFLICT (replica, path) DO UPDATE SET oid = excluded.oid, columns = excluded.columns",
            [self._label, path, table.schema, table.name, table.oid, columns],
        )

    def forget_table(self, path: str) -> None:
        """Forget a table that is gone."""
        query = "DELETE FROM penstock.replica_tables WHERE replica = %s AND path = %s"
        self.connection.execute(query, [self._label, path])

    def note(self, state: str, error: str = "", fresh: datetime | None = None) -> None:
        """Write down how the process is; one that was replaced has nothing to say."""
        self.fresh = fresh or self.fresh
        self.connection.execute(
            "UPDATE penstock.replicas SET state = %s, error = %s, fresh = %s, at = now() "
            "WHERE name = %s AND epoch = %s",
            [state, error, self.fresh, self._label, self._epoch],
        )

    def fail(self, error: str) -> None:
        """Write down what has ended the process."""
        self.connection.execute(
            "UPDATE penstock.replicas SET state = 'failed', error = %s, at = now() WHERE name = %s",
            [error, self._label],
        )

    def remove(self) -> bool:
        """Forget the replica; its tables stay."""
        self._hold()
        query = "DELETE FROM penstock.replicas WHERE name = %s"
        return self.connection.execute(query, [self._label]).rowcount == 1

    def report(self) -> dict[str, Any]:
        """Return what the process has said last of itself."""
        query = """
            SELECT r.state, r.process, r.error, r.at, (SELECT max(seen) FROM penstock.replica_positions p
                                                       WHERE p.replica = r.name) AS seen
            FROM penstock.replicas r WHERE r.name = %s
        """
        row = self.connection.execute(query, [self._label]).fetchone()
        return dict(
            zip(("state", "process", "error", "at", "seen"), row or ("", "", "", None, None), strict=True)
        )


def label(namespace: str, name: str) -> str:
    """Return what a replica is called in its database, which teams may share."""
    return f"{namespace}:{name}" if namespace else name


def names(connection: Connection, namespace: str) -> list[str]:
    """Return the replicas of a namespace in a database."""
    found = [str(row[0]) for row in connection.execute("SELECT name FROM penstock.replicas ORDER BY name")]
    return [each.rpartition(":")[2] for each in found if each.rpartition(":")[0] == namespace]
