"""Staging tables: where executors put the rows of one attempt to write a batch, before they are merged."""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import errors
from psycopg.sql import SQL, Identifier

from penstock.errors import SinkError
from penstock.log.ledger import Batch
from penstock.targets.postgres.columns import DELETED, TableColumn, definition
from penstock.targets.postgres.connection import Connection

SCHEMA = "penstock"
LANE, ATTEMPT, ORDINAL = "penstock lane", "penstock attempt", "penstock ordinal"
_TAGS = {LANE: "integer", ATTEMPT: "bigint", ORDINAL: "bigint"}
_FIND = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename, %s)"
_attempts = itertools.count(1)


@dataclass(frozen=True)
class Staged:
    """What one lane has put into the staging table, and in which attempt of its task."""

    lane: int
    attempt: int
    count: int


@dataclass(frozen=True)
class Staging:
    """A table for one attempt; unlogged, because it is worthless when the attempt is over."""

    name: str
    columns: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls, sink: str, epoch: int, batch: Batch, columns: Sequence[TableColumn], deletes: bool
    ) -> "Staging":
        """Describe the table of a new attempt; no other attempt has its name."""
        own = [(column.name, column.kind) for column in columns] + [(DELETED, "boolean")] * deletes
        name = f"{_prefix(sink)}{epoch}_{batch.number}_{next(_attempts)}"
        return cls(name, (*_TAGS.items(), *own))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    @property
    def identifier(self) -> Identifier:
        return Identifier(SCHEMA, self.name)

    def create(self, connection: Connection) -> None:
        columns = SQL(", ").join(definition(*column) for column in self.columns)
        connection.execute(SQL("CREATE UNLOGGED TABLE {} ({})").format(self.identifier, columns))

    def check(self, connection: Connection, lanes: Sequence[Staged]) -> None:
        """See that every staged row is still there: a database that crashed has emptied the table."""
        count = SQL("SELECT {}, {}, count(*) FROM {} GROUP BY 1, 2").format(
            Identifier(LANE), Identifier(ATTEMPT), self.identifier
        )
        there = {(lane, attempt): number for lane, attempt, number in connection.execute(count)}
        staged = sum(lane.count for lane in lanes)
        found = sum(there.get((lane.lane, lane.attempt), 0) for lane in lanes)
        if any(there.get((lane.lane, lane.attempt), 0) != lane.count for lane in lanes):
            raise SinkError(
                f"staging holds {found:,} of {staged:,} rows: the database restarted",
                hint="the batch is written again",
            )

    def drop(self, connection: Connection) -> None:
        """Drop the table, unless a task that nobody waits for still writes to it: then `open` will."""
        _drop(connection, self.name)


def drop_older(connection: Connection, sink: str, epoch: int) -> None:
    """Drop what earlier epochs of a sink have left behind."""
    prefix = _prefix(sink)
    for (name,) in connection.execute(_FIND, [SCHEMA, prefix]).fetchall():
        if int(name.removeprefix(prefix).split("_")[0]) < epoch:
            _drop(connection, name)


def _drop(connection: Connection, name: str) -> None:
    try:
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '2s'")
            connection.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(SCHEMA, name)))
    except errors.LockNotAvailable:
        return


def _prefix(sink: str) -> str:
    return f"staging_{hashlib.sha256(sink.encode()).hexdigest()[:16]}_"
