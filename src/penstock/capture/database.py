"""Which database a capture reads: the address says it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from penstock.capture.advice import advice
from penstock.capture.capture import Capture
from penstock.capture.mongodb.address import is_mongodb, require_package
from penstock.capture.mysql.address import is_mysql
from penstock.capture.output import Report
from penstock.capture.position import Position
from penstock.capture.replication import connect
from penstock.capture.requests import send
from penstock.capture.role import role_script
from penstock.capture.session import Session as PostgresSession
from penstock.capture.session import explained
from penstock.capture.slot import Slot, Source
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.capture.tables import TableShape
from penstock.capture.wishes import Wishes
from penstock.settings import Settings


class Session(Protocol):
    """One run of a capture."""

    has_begun: bool

    def run(self) -> None:
        """Write what is there and what comes, until stopped."""


class Database(Protocol):
    """The database of a capture, as its commands use it."""

    def check(self) -> list[str]:
        """Refuse what would not work; return what the user should know."""

    def slot(self, position: Position | None) -> Slot | None:
        """Say who runs the capture and how far behind it is."""

    def shape(self, path: str) -> TableShape:
        """Return a table as it is now."""

    def request(self, request: SnapshotRequest) -> None:
        """Have a table, or a range of its keys, read again."""

    def role(self, name: str) -> str:
        """Return the SQL of a role that may capture, and no more."""

    def release(self, seconds: float) -> str:
        """Let go of what the capture keeps in the database; return what can't be."""


def make_session(settings: Settings, capture: Capture, wishes: Wishes, report: Report) -> Session:
    """Return a run of a capture, of the database that its address is of."""
    dsn = settings.dsn(capture.connection)
    if is_mongodb(dsn):
        require_package()
        from penstock.capture.mongodb.session import MongoDbSession

        return MongoDbSession(settings, capture, wishes, report)
    if is_mysql(dsn):
        from penstock.capture.mysql.session import MariaDbSession

        return MariaDbSession(settings, capture, wishes, report)
    return PostgresSession(settings, capture, wishes, report)


@contextmanager
def open_database(settings: Settings, capture: Capture) -> Iterator[Database]:
    """Open the database of a capture."""
    dsn = settings.dsn(capture.connection)
    if is_mongodb(dsn):
        require_package()
        from penstock.capture.mongodb.client import Client
        from penstock.capture.mongodb.database import MongoDbDatabase

        with Client(dsn, capture.name) as client:
            yield MongoDbDatabase(client, capture, settings)
        return
    if is_mysql(dsn):
        from penstock.capture.mysql.database import MariaDbDatabase
        from penstock.capture.mysql.server import Server

        with Server(dsn) as server:
            yield MariaDbDatabase(server, capture, settings)
        return
    with explained(), connect(dsn, f"penstock capture {capture.name}") as connection:
        yield PostgresDatabase(Source(connection, capture, settings.namespace))


class PostgresDatabase:
    """A PostgreSQL database, as the commands use it."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def check(self) -> list[str]:
        self._source.check()
        return advice(self._source)

    def slot(self, position: Position | None) -> Slot | None:  # noqa: ARG002
        return self._source.slot()

    def shape(self, path: str) -> TableShape:
        return self._source.catalogue.shape(path)

    def request(self, request: SnapshotRequest) -> None:
        send(request, self._source)

    def role(self, name: str) -> str:
        return role_script(self._source, name)

    def release(self, seconds: float) -> str:
        self._source.await_free(seconds)
        self._source.drop_slot()
        if self._source.drop_publication():
            return ""
        return f"the role may not drop the publication {self._source.publication}"
