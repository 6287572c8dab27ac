"""A capture in a thread, and what it has written."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from penstock.capture import Capture, Runner, Store, Wishes
from penstock.log import Broker
from penstock.log.cursor import Cursor


@dataclass
class Written:
    """A record as a reader sees it."""

    topic: str
    key: object
    value: object
    headers: dict
    offset: int

    @property
    def op(self):
        return None if self.value is None else self.value["op"]

    @property
    def after(self):
        return self.value["after"]

    @property
    def before(self):
        return self.value["before"]


@dataclass
class Database:
    """A schema of a test's own, and the captures of it."""

    settings: object
    schema: str

    def __post_init__(self):
        self.connection = psycopg.connect(self.settings.dsn().value, autocommit=True)
        self.execute(f"create schema {self.schema}")
        self.execute(f"set search_path to {self.schema}, public")

    def execute(self, *statement):
        return self.connection.execute(*statement)

    def capture(self, *tables, name=None, **more):
        """Declare a capture of tables of this schema."""
        made = Capture(name or self.schema, tables=tuple(f"{self.schema}.{each}" for each in tables), **more)
        Store(self.settings).put(made)
        return made

    @contextmanager
    def running(self, capture, **wishes):
        """Run a capture until the block ends; what stopped it before is raised."""
        stopped, failed, positions = threading.Event(), [], []
        runner = Runner(
            self.settings,
            capture.name,
            Wishes(stopped=stopped, **wishes),
            report=positions.append,
            log=lambda line: failed.append(line),
        )

        def run():
            try:
                runner.run()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            self.await_snapshot(capture, failed)
            yield positions
            self.await_written(capture, failed)
        finally:
            stopped.set()
            thread.join(60)
        raise_first(failed)

    def await_snapshot(self, capture, failed=()):
        """Wait until the rows are written."""
        _await(lambda: _is_there(self.settings, capture, 0), failed)

    def await_written(self, capture, failed=()):
        """Wait until all that is committed now is written."""
        end = self.end()
        self.execute("select pg_logical_emit_message(true, 'penstock', 'heartbeat')")
        _await(lambda: _is_there(self.settings, capture, end), failed)

    def end(self):
        return self.execute("select (pg_current_wal_insert_lsn() - '0/0')::int8").fetchone()[0]

    def records(self, capture, table):
        return records(self.settings, capture.topic(f"{self.schema}.{table}"))

    def drop(self, capture):
        """Let go of what a capture left in the database."""
        with psycopg.connect(self.settings.dsn().value, autocommit=True) as connection:
            slot, publication = capture.slot_name(""), capture.publication_name("")
            connection.execute(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s",
                [slot],
            )
            connection.execute(f'drop publication if exists "{publication}"')

    def close(self):
        for name in Store(self.settings).names():
            if name.startswith(self.schema):
                self.drop(Store(self.settings).get(name))
        self.execute(f"drop schema {self.schema} cascade")
        self.connection.close()


def records(settings, topic):
    """All committed records of a topic."""
    if topic not in Broker(settings).topics([topic]):
        return []
    with Cursor(topic, settings) as cursor:
        cursor.start()
        return [
            Written(topic, _json(each.key()), _json(each.value()), dict(each.headers() or []), each.offset())
            for each in cursor.read_to(cursor.ends())
        ]


def ops(found):
    """The operations of records, None for tombstones."""
    return [each.op for each in found]


def rows(found):
    """The table that the records make, by key."""
    made = {}
    for each in found:
        if each.value is None or each.op == "d":
            made.pop(str(each.key), None)
        elif each.op in "cur":
            made[str(each.key)] = each.after
    return list(made.values())


def _json(text):
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def raise_first(failed):
    for each in failed:
        raise each if isinstance(each, BaseException) else AssertionError(each)


def _is_there(settings, capture, end):
    found = Store(settings).position(capture.name)
    return found is not None and found.lsn >= end and not found.pending and not found.requests


def _await(is_there, failed, timeout=60.0):
    deadline = time.monotonic() + timeout
    while not is_there():
        raise_first(failed)
        if time.monotonic() > deadline:
            raise TimeoutError("the capture does not come to its end")
        time.sleep(0.05)
