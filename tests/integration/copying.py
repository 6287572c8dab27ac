"""A database that a replica keeps, and the replica in a thread."""

import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import psycopg
from psycopg.conninfo import make_conninfo
from tests.capture.running import raise_first

from penstock.capture import Store
from penstock.errors import ReplicaError
from penstock.replica import Replica, ReplicaRunner, auditing, repaired
from penstock.replica.status import status

NAME = "copy"


class Copy:
    """A second database beside a test's own, which replicas of its captures fill."""

    def __init__(self, database, name):
        self.database, self.name = database, name
        database.execute(f"create database {name}")
        dsn = make_conninfo(database.settings.dsn().value, dbname=name)
        connections = {NAME: {"dsn": dsn}}
        self.settings = replace(database.settings, connections=connections)
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.lines = []

    def execute(self, *statement):
        return self.connection.execute(*statement)

    def replica(self, capture, schema="copy"):
        return Replica(self.name, capture.name, NAME, schema)

    def tables(self, schema="copy"):
        found = self.execute("select tablename from pg_tables where schemaname = %s", [schema])
        return sorted(row[0] for row in found)

    @contextmanager
    def following(self, capture, schema="copy", **more):
        """Run a replica until the block ends, and until all is there that the source has by then."""
        stopped, failed = threading.Event(), []
        runner = ReplicaRunner(
            self.settings, self.replica(capture, schema), stopped, log=self.lines.append, **more
        )

        def run():
            try:
                runner.run()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield self
            self.await_all(capture, failed)
        finally:
            stopped.set()
            thread.join(60)
        raise_first(failed)

    def await_all(self, capture, failed=(), timeout=60.0):
        """Wait until the copy has what the source has now, and no table is being read again."""
        deadline = time.monotonic() + timeout
        self.database.await_written(capture, failed)
        while not self._is_there(capture):
            raise_first(failed)
            if time.monotonic() > deadline:
                raise TimeoutError(f"the copy stays behind: {self.lines[-5:]}")
            time.sleep(0.1)

    def _is_there(self, capture):
        try:
            found = status(self.settings, self.name, NAME)
        except ReplicaError:  # not yet
            return False
        position = Store(self.settings).position(capture.name)
        return found.lag == 0 and found.tables == len(capture.tables) and not position.pending

    def sum(self, table, key="id", columns=None, schema="copy"):
        return checksum(self.connection, f"{schema}.{table}", key, columns)

    def audited(self, capture, *, repair=False, **more):
        """What an audit finds; with `repair`, what is left of it after one."""
        with auditing(self.settings, self.replica(capture), **more) as audit:
            found = audit.run()
            return (found, repaired(audit, found)) if repair else found

    def close(self):
        self.connection.close()
        self.database.execute(f"drop database {self.name} with (force)")


def columns_of(connection, table):
    """The columns of a table as SQL, without the one that copies add, those of timetz in UTC."""
    found = connection.execute(
        "select quote_ident(attname), atttypid::regtype::text from pg_attribute "
        "where attrelid = %s::regclass and attnum > 0 "
        "and not attisdropped and attname <> '_lsn' and attgenerated <> 'v' order by attname",
        [table],
    )
    return [_compared(name, type) for name, type in found]


def _compared(name, type):
    if type.endswith("[]"):
        return f"to_json({name})"
    return f"({name} at time zone 'UTC')" if type == "time with time zone" else name


def checksum(connection, table, key="id", columns=None):
    """Of all rows, in the order of their keys."""
    row = f"row({', '.join(columns or columns_of(connection, table))})"
    found = connection.execute(
        f"select count(*), md5(string_agg(({row})::text, ',' order by {key})) from {table}"
    )
    return found.fetchone()
