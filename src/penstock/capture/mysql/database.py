"""A MariaDB server, as the commands of a capture use it."""

import time
from dataclasses import replace

from penstock.capture.capture import Capture
from penstock.capture.mysql.catalogue import sql_path
from penstock.capture.mysql.chunks import is_ordered
from penstock.capture.mysql.server import Server, quoted
from penstock.capture.mysql.source import Source
from penstock.capture.position import Position
from penstock.capture.slot import Slot
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.capture.store import Store
from penstock.capture.tables import TableShape
from penstock.errors import CaptureError
from penstock.settings import Settings


class MariaDbDatabase:
    """The server of a capture."""

    def __init__(self, server: Server, capture: Capture, settings: Settings) -> None:
        self._source = Source(server, capture, settings.namespace)
        self._capture, self._settings = capture, settings

    def check(self) -> list[str]:
        self._source.check()
        shapes = [self.shape(path) for path in self._capture.tables]
        found = [
            f"{each.path} has no primary key: its records have no key, and its topic is not compacted"
            for each in shapes
            if not each.key
        ]
        if self._source.server.one("select @@global.sync_binlog") != "1":
            found.append(
                "sync_binlog is not 1: after a loss of power the server may lack what is in the topics"
            )
        return found

    def slot(self, position: Position | None) -> Slot | None:
        return self._source.slot(position)

    def shape(self, path: str) -> TableShape:
        return self._source.catalogue.shape(path)

    def request(self, request: SnapshotRequest) -> None:
        """Write a request down with the declaration: the server's log takes no messages."""
        if request.path not in self._capture.tables:
            raise CaptureError(
                f"capture {self._capture.name!r} has no table {request.path!r}",
                hint=f"it has {', '.join(self._capture.tables)}",
            )
        shape = self.shape(request.path)
        if not shape.key:
            raise CaptureError(
                f"table {request.path!r} has no primary key: its rows can't be distinguished",
                hint=f"`penstock capture run {self._capture.name} --snapshot-again` writes all tables again",
            )
        self._refuse_range(request, shape)
        store = Store(self._settings)
        known = store.get(self._capture.name)
        store.put(replace(known, requests=(*known.requests, request)))

    def _refuse_range(self, request: SnapshotRequest, shape: TableShape) -> None:
        for given in (request.after, request.last):
            if given is not None and (len(given) != len(shape.key) or not is_ordered(shape)):
                raise CaptureError(
                    f"{','.join(given)!r} is not a key of {request.path!r} that rows can be behind",
                    hint=f"give {','.join(shape.key)}, or no range",
                )

    def role(self, name: str) -> str:
        user = f"{quoted(name)}@'%'"
        lines = [
            f"-- The user of capture {self._capture.name}: it reads the log as a replica, and its tables.",
            f"CREATE USER {user} IDENTIFIED BY '…';",
            f"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {user};",
            *(f"GRANT SELECT ON {sql_path(each)} TO {user};" for each in self._capture.paths),
        ]
        return "\n".join(lines)

    def release(self, seconds: float) -> str:
        """Nothing is kept for a capture: only wait until nobody runs it."""
        deadline = time.monotonic() + seconds
        while self._source.holder() and time.monotonic() < deadline:
            time.sleep(0.2)
        if holder := self._source.holder():
            raise CaptureError(f"the capture is run by {holder}", hint="stop that one first")
        return ""
