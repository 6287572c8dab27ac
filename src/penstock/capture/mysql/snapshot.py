"""A view of the database as it is at one place of its log, without a lock."""

from typing import Self

from penstock.capture.mysql.place import place
from penstock.capture.mysql.server import Server
from penstock.errors import SourceError
from penstock.settings import Secret

_BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
_PLACE = "SHOW STATUS LIKE 'binlog_snapshot_%'"


class Snapshot:
    """Reads what was committed before `place`, and nothing else."""

    def __init__(self, dsn: Secret) -> None:
        self.server = Server(dsn)
        self.server.ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.renew()

    def renew(self) -> None:
        """Look at the database as it is now."""
        self.server.ask(_BEGIN)
        found = {str(name).lower(): value for name, value in self.server.ask(_PLACE)}
        file, at = found.get("binlog_snapshot_file"), found.get("binlog_snapshot_position")
        if not file or not at:
            raise SourceError("the server does not say where its snapshot is in the log", hint="tried again")
        self.file, self.at = file, int(at)

    @property
    def place(self) -> int:
        return place(self.file, self.at)

    def close(self) -> None:
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
