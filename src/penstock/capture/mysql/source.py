"""What a capture needs of a server: its settings, its log, and a lock against a second process."""

import zlib
from dataclasses import replace

from penstock.capture.capture import Capture
from penstock.capture.lost import again
from penstock.capture.mysql.catalogue import Catalogue
from penstock.capture.mysql.place import number, offset, place, start_of
from penstock.capture.mysql.server import Server
from penstock.capture.position import BinlogPlace, Position
from penstock.capture.slot import Slot
from penstock.errors import CaptureError, CaptureHeldError, ChangesLostError

_WANTED = {
    "log_bin": ("1", "start the server with log_bin and a server_id"),
    "binlog_format": ("ROW", "SET GLOBAL binlog_format = ROW, also in the server's configuration"),
    "binlog_row_image": ("FULL", "SET GLOBAL binlog_row_image = FULL, also in the server's configuration"),
    "binlog_row_metadata": (
        "FULL",
        "SET GLOBAL binlog_row_metadata = FULL, also in the server's configuration: without it the log has "
        "neither the names of columns nor keys",
    ),
}
_OLDEST = (10, 5)


class Source:
    """The database of a capture: what is asked of it besides its stream."""

    def __init__(self, server: Server, capture: Capture, namespace: str) -> None:
        self.server, self.capture = server, capture
        self.catalogue = Catalogue(server)
        label = capture.identity(namespace).label
        self.lock = f"penstock {zlib.crc32(label.encode()):08x} {capture.name}"
        self.replica = zlib.crc32(label.encode()) | 0x80000000  # far from what people number theirs with

    def check(self) -> None:
        """Refuse a server, a user or tables with which it would not work."""
        self._refuse_version()
        self._refuse_wishes()
        for name, (wanted, hint) in _WANTED.items():
            found = self.server.one(f"select @@global.{name}")
            if found != wanted:
                raise CaptureError(f"{name} is {found!r}, {wanted!r} expected", hint=hint)
        self.logs()
        self._refuse_unlogged()
        for path in self.capture.paths:
            self.catalogue.shape(path)

    def _refuse_version(self) -> None:
        version = str(self.server.one("select version()"))
        if "mariadb" not in version.lower():
            raise CaptureError(
                f"this is MySQL {version}: its log is written otherwise than MariaDB's",
                hint="captures of MariaDB 10.5 and newer are there; for MySQL, Debezium's topics can be read",
            )
        if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
            raise CaptureError(f"this is MariaDB {version}", hint="captures need 10.5 or newer")

    def _refuse_unlogged(self) -> None:
        """Refuse a server whose log leaves out a captured database, or what comes from its primary."""
        for _, _, logged, ignored, *_ in self.server.ask("show master status"):
            for database in {path.partition(".")[0] for path in self.capture.paths}:
                if not _is_logged(database, logged or "", ignored or ""):
                    raise CaptureError(
                        f"the server does not log database {database!r}: binlog_do_db is {logged!r}, "
                        f"binlog_ignore_db {ignored!r}",
                        hint="take both out of the server's configuration, and restart it",
                    )
        is_replica = bool(self.server.one("select @@global.gtid_slave_pos"))
        if is_replica and self.server.one("select @@global.log_slave_updates") != "1":
            raise CaptureError(
                "this server is or was a replica, and does not log what comes from its primary: "
                "log_slave_updates is off",
                hint="start it with log_slave_updates = ON, or capture the primary",
            )

    def _refuse_wishes(self) -> None:
        for option in ("slot", "publication", "messages"):
            if getattr(self.capture, option):
                raise CaptureError(f"MariaDB has no {option}", hint=f"leave --{option} out")

    def logs(self) -> dict[str, int]:
        """Return the files of the log, with their sizes."""
        return {str(row[0]): int(row[1] or 0) for row in self.server.ask("show binary logs")}

    def hold(self, seconds: float) -> None:
        """Keep others from running the capture for as long as this connection lasts."""
        if self.server.one("select get_lock(%s, %s)", self.lock, seconds) != "1":
            raise CaptureHeldError(
                f"capture {self.capture.name!r} runs already: its lock is held by {self.holder()}",
                hint="stop that one first; a killed one is let go when the server notices",
            )

    def holder(self) -> str:
        """Say who runs the capture; nothing if nobody does."""
        id = self.server.one("select is_used_lock(%s)", self.lock)
        return f"connection {id} of the server" if id else ""

    def slot(self, position: Position | None) -> Slot:
        """Say who runs the capture and how far behind it is, as bytes of the log."""
        logs, behind = self.logs(), 0
        if position is not None and position.binlog is not None:
            sizes = {place(file, 0): size for file, size in logs.items()}
            behind = sum(size for first, size in sizes.items() if first > position.lsn)
            behind += max(0, logs.get(position.binlog.file, 0) - offset(position.lsn))
        return Slot(self.lock, self.holder(), 0, "kept", sum(logs.values()), behind)

    def refuse_lost(self, position: Position) -> None:
        """Refuse to go on where the log does not hold what comes behind the position any more."""
        helps = again(self.capture)
        known, at, logs = position.binlog, offset(position.lsn), self.logs()
        if known is None:
            raise CaptureError("the position is of PostgreSQL", hint=helps)
        if known.file not in logs:
            lasts = [place(file, 0) for file in logs]
            if lasts and number(max(lasts)) < number(position.lsn):
                raise ChangesLostError(
                    f"the log ends before its file {known.file}: the server was reset, or is another one",
                    hint=f"point the connection at the right one; or {helps}",
                )
            raise ChangesLostError(
                f"the server has purged {known.file} of its log, and changes since the position with it",
                hint=f"raise binlog_expire_logs_seconds; {helps}",
            )
        if logs[known.file] < at:
            raise ChangesLostError(
                f"{known.file} ends at {logs[known.file]}, before the position {at}: the server was set back",
                hint=f"is sync_binlog 1? {helps}",
            )
        self._refuse_other(known, at, helps)

    def _refuse_other(self, known: BinlogPlace, at: int, helps: str) -> None:
        if start_of(known.file, at) != (known.file, at):
            return
        found = self.gtid(known.file, at)
        if found is None or _gtids(found) != _gtids(known.gtid):
            raise CaptureError(
                f"this is another server: its log has {found or 'nothing'} at {known.file}:{at}, the "
                f"position {known.gtid or 'nothing'}",
                hint=f"point the connection at the right one; or {helps}",
            )

    def gtid(self, file: str, at: int) -> str | None:
        """Return the ids that the log has before a place; None where no event begins there."""
        return self.server.one("select binlog_gtid_pos(%s, %s)", file, at)

    def refuse_born(self, position: Position, born: int) -> None:
        """Refuse a file of the same name that another server made, or the same one after a reset."""
        known = position.binlog
        if known is not None and known.born and known.born != born:
            raise CaptureError(
                f"this is another server, or it was reset: {known.file} was made at {born}, that of the "
                f"position at {known.born} (seconds since 1970)",
                hint="point the connection at the right one; or `penstock capture run "
                f"{self.capture.name} --snapshot-again` writes all rows again",
            )


def moved(position: Position, lsn: int, **more: object) -> Position:
    """Return a position at another place of the same log; what is half written stays so."""
    known = position.binlog or BinlogPlace("", 0)
    binlog = replace(known, **more) if more else known  # type: ignore[arg-type]
    return replace(position, lsn=lsn, binlog=binlog)


def _is_logged(database: str, logged: str, ignored: str) -> bool:
    """Whether a database is in the log, by the lists of those that are and of those that are not."""
    wanted, others = (
        [each.strip() for each in text.split(",") if each.strip()] for text in (logged, ignored)
    )
    return database in wanted if wanted else database not in others


def _gtids(text: str) -> set[str]:
    return {each.strip() for each in text.split(",") if each.strip()}
