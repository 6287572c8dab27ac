"""The sink: staged by executors, merged by the driver in the transaction that writes the ledger."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import get_args

import psycopg
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock import points
from penstock.errors import PenstockError, SinkError, TargetError
from penstock.log.ledger import Batch, Entry
from penstock.targets.computed import compute_up_to_last_shuffle
from penstock.targets.postgres import ledger, prepared, staging
from penstock.targets.postgres.columns import DELETED, columns_of
from penstock.targets.postgres.connection import Connection, connect, explain
from penstock.targets.postgres.lane import Lane, stage
from penstock.targets.postgres.merge import Merge
from penstock.targets.postgres.staging import Staged, Staging
from penstock.targets.postgres.table import DeclaredTable
from penstock.targets.sink import BeforeCommit, Guarantee, SinkOptions, nothing
from penstock.targets.tasks import task_errors

_log = logging.getLogger("penstock")


class PostgresSink:
    """Writes the batches of one flow into a table.

        table = PostgresTable("alerts", key="card", write="upsert")
        sink = PostgresSink(table, schema, SinkOptions(settings, "fraud.alerts", lanes=4))
        sink.open()
        sink.write(rows, batch)

    As many tasks, and so connections, write at the same time as there are lanes.
    """

    def __init__(self, table: DeclaredTable, schema: StructType, options: SinkOptions) -> None:
        guarantee, lanes = options.guarantee, options.lanes
        if guarantee not in get_args(Guarantee):
            raise TargetError(f"guarantee is {guarantee!r}, expected one of {', '.join(get_args(Guarantee))}")
        if lanes < 1:
            raise TargetError(f"{table.name} has {lanes} lanes, expected at least 1")
        self.id = options.id
        self.table = table
        self._columns = columns_of(table, schema)
        self._schema = schema
        self._deletes = DELETED in schema.names
        self._spread = table.keys or prepared.primary_key(table, self._columns)
        self._merge = Merge(table, self._columns, self._deletes, repeated=guarantee == "at-least-once")
        self._address = table.address(options.settings)
        self._lanes = lanes
        self._guarantee = guarantee
        self._epoch: int | None = None
        self._connection: Connection | None = None

    def entries(self) -> tuple[Entry, ...]:
        """What the sink has written down last."""
        with self._connected("read the ledger") as connection:
            ledger.prepare(connection)
            return (ledger.peek(connection, self.id),)

    def open(self, *, anew: bool = False) -> tuple[Entry, ...]:
        """Become the sink's writer, and see that ledger and table are there and fit."""
        with self._connected("open the sink") as connection:
            prepared.prepare(connection, self.table, self._columns)
            self._merge = replace(self._merge, skips=prepared.repeatable(connection, self.table))
        (entry,) = self.take_over()
        if anew:
            entry = Entry(entry.epoch)
            with self._connected("begin anew") as connection:
                ledger.write_down(connection, self.id, entry)
        points.reach("sink.postgres.opened", self.id)
        return (entry,)

    def take_over(self) -> tuple[Entry, ...]:
        """Become the writer by the ledger alone, whatever became of the table."""
        with self._connected("take the ledger over") as connection:
            ledger.prepare(connection)
            entry = ledger.take_over(connection, self.id)
            staging.drop_older(connection, self.id, entry.epoch)
        self._epoch = entry.epoch
        return (entry,)

    def write(self, rows: DataFrame, batch: Batch, before_commit: BeforeCommit = nothing) -> bool:
        """Write a batch, unless the ledger says that it was written."""
        self._check_rows(rows)
        if not self._begin(batch):
            return False
        table = Staging.of(self.id, self.epoch, batch, self._columns, self._deletes)
        with self._connected("make a staging table") as connection:
            table.create(connection)
        lanes = self._stage(rows, table, before_commit)
        points.reach("sink.postgres.before-merge", self.id)
        self._commit(table, lanes, batch)
        points.reach("sink.postgres.committed", self.id)
        self._clean_up(table)
        return True

    def close(self) -> None:
        """Close the connection; the ledger keeps what was written."""
        self._epoch = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def epoch(self) -> int:
        """The epoch in which this process is the writer."""
        if self._epoch is None:
            raise SinkError(f"sink {self.id!r} is not open", hint="call open() before write()")
        return self._epoch

    def _begin(self, batch: Batch) -> bool:
        """Say whether the batch is to be written; at most once, it counts as written from here on."""
        with self._connected("read the ledger") as connection, connection.transaction():
            entry = self._entry(connection)
            due = self._guarantee == "at-least-once" or entry.is_due(batch)
            if due and self._guarantee == "at-most-once":
                ledger.write_down(connection, self.id, Entry(self.epoch, batch))
            return due

    def _stage(self, rows: DataFrame, table: Staging, before_commit: BeforeCommit) -> list[Staged]:
        lane = Lane(self.id, self._address, table)
        try:
            with task_errors():
                ordered = self.table.write == "upsert"
                staging = stage(rows, lane, self._columns, self._spread, self._lanes, ordered=ordered)
                compute_up_to_last_shuffle(staging)
                before_commit(staging)
                return [Staged(*row) for row in staging.collect()]
        except PenstockError:
            # A successor drops our staging table: then its taking over is the cause to report.
            with self._connected("read the ledger") as connection:
                ledger.read(connection, self.id).refuse_older(self.epoch, self.id)
            raise

    def _commit(self, table: Staging, lanes: list[Staged], batch: Batch) -> None:
        """Merge and write the ledger in one transaction; if its end is not heard of, the ledger has it."""
        with self._connected("merge a batch") as connection, connection.transaction():
            entry = self._entry(connection)
            if self._guarantee == "exactly-once" and not entry.is_due(batch):
                return
            table.check(connection, lanes)
            repeated = self._merge.run(connection, table, lanes)
            if self._guarantee != "at-most-once":
                ledger.write_down(connection, self.id, Entry(self.epoch, batch))
            points.reach("sink.postgres.merged", self.id)
        if repeated:
            _log.info("%s: %d rows were in %s already", self.id, repeated, self.table.name)

    def _clean_up(self, table: Staging) -> None:
        """Drop what is not needed any more; the batch is written, whatever becomes of this."""
        with suppress(SinkError), self._connected("drop a staging table") as connection:
            table.drop(connection)

    def _entry(self, connection: Connection) -> Entry:
        """Return the ledger's entry and hold it, so that no other writer begins before we end."""
        entry = ledger.read(connection, self.id, lock=True)
        entry.refuse_older(self.epoch, self.id)
        return entry

    def _check_rows(self, rows: DataFrame) -> None:
        seen = {field.name: field.dataType.simpleString() for field in rows.schema}
        for field in self._schema:
            expected, found = field.dataType.simpleString(), seen.get(field.name, "missing")
            if found != expected:
                raise TargetError(
                    f"{self.table.name}: column {field.name!r} of the rows is {found}, expected {expected}",
                    hint="the flow returns other columns than it was described with",
                )

    @contextmanager
    def _connected(self, what: str) -> Iterator[Connection]:
        """Lend the connection; one that an error came through is not used again."""
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._address, self.id)
        try:
            yield self._connection
        except psycopg.Error as error:
            self._connection.close()
            raise explain(what, error) from error
