"""What a capture needs of PostgreSQL: settings, a publication and a slot; made, checked and dropped."""

import time
from dataclasses import dataclass

import psycopg

from penstock.capture import lsn as lsns
from penstock.capture.capture import Capture
from penstock.capture.tables import Catalogue, Connection, listed, quoted
from penstock.errors import CaptureError, CaptureHeldError, SourceError

_SLOT = """
select s.active_pid, s.confirmed_flush_lsn::text, s.restart_lsn::text, s.wal_status, s.plugin, s.database,
       coalesce(pg_current_wal_lsn() - s.restart_lsn, 0)::int8,
       coalesce(pg_current_wal_lsn() - s.confirmed_flush_lsn, 0)::int8,
       a.application_name, a.client_addr::text
from pg_replication_slots s left join pg_stat_activity a on a.pid = s.active_pid
where s.slot_name = %s
"""
_PUBLICATION = """
select pubinsert and pubupdate and pubdelete and pubtruncate, pubviaroot, oid::int8
from pg_publication where pubname = %s
"""
_FILTERED = """
select count(*) from pg_publication_rel
where prpubid = %s::int8::oid and (prqual is not null or prattrs is not null)
"""
_PUBLISHED = "select schemaname || '.' || tablename from pg_publication_tables where pubname = %s"
_FAILOVER_SINCE, _GENERATED_SINCE, _FILTERS_SINCE, _OLDEST = 170000, 180000, 150000, 140000


@dataclass(frozen=True)
class Slot:
    """A slot: `retained` bytes of the log are kept for it, `behind` of them are not confirmed, if known."""

    name: str
    holder: str
    confirmed: int
    status: str
    retained: int | None
    behind: int | None


class Source:
    """The database of a capture: what is asked of it besides its stream."""

    def __init__(self, connection: Connection, capture: Capture, namespace: str) -> None:
        self.connection, self.capture = connection, capture
        self.slot_name = capture.slot_name(namespace)
        self.publication = capture.publication_name(namespace)
        self.version = connection.info.server_version
        self.generated = self.version >= _GENERATED_SINCE
        self.catalogue = Catalogue(connection, self.generated)

    @property
    def database(self) -> str:
        return self.connection.info.dbname

    @property
    def wants_failover(self) -> bool:
        return self.capture.failover and self.version >= _FAILOVER_SINCE

    def check(self) -> None:
        """Refuse a server, a role or tables with which it would not work."""
        if self.version < _OLDEST:
            raise CaptureError(
                f"PostgreSQL is of version {self.version // 10000}", hint="captures need 14 or newer"
            )
        level = self._one("select current_setting('wal_level')")
        if level != "logical":
            raise CaptureError(
                f"wal_level is {level!r}",
                hint="ALTER SYSTEM SET wal_level = 'logical', and restart the server",
            )
        if not self._one("select rolreplication or rolsuper from pg_roles where rolname = current_user"):
            raise CaptureError(
                f"role {self.connection.info.user!r} may not replicate",
                hint=f"`penstock capture role {self.capture.name}` prints what it needs",
            )
        for path in self.capture.paths:
            self.catalogue.facts(path)

    def unpublished(self) -> set[str]:
        """Return the tables that are not in the publication; all of them, if there is none."""
        found = self.connection.execute(_PUBLICATION, [self.publication]).fetchone()
        if found is not None:
            self._refuse_partial(*found)
        published = {row[0] for row in self.connection.execute(_PUBLISHED, [self.publication])}
        return set(self.capture.paths) - published

    def publish(self) -> None:
        """Make the publication, or add the tables that it lacks."""
        missing = [path for path in self.capture.paths if path in self.unpublished()]
        is_there = self._one("select 1 from pg_publication where pubname = %s", self.publication)
        try:
            if not is_there:
                self.connection.execute(self.publication_command())
            elif missing:
                name = quoted(self.publication)
                self.connection.execute(f"ALTER PUBLICATION {name} ADD TABLE {listed(missing)}")
        except psycopg.errors.InsufficientPrivilege as error:
            raise CaptureError(
                f"the publication {self.publication!r} lacks tables, and the role may not change it: {error}",
                hint=f"run what `penstock capture role {self.capture.name}` prints as the tables' owner",
            ) from error

    def _refuse_partial(self, whole: bool, via_root: bool, oid: int) -> None:
        """A publication that was made by somebody else may leave changes, rows or columns out."""
        partial = self.version >= _FILTERS_SINCE and self._one(_FILTERED, oid)
        if whole and via_root and not partial:
            return
        what = "rows or columns" if partial else "inserts, updates, deletes or truncates" if via_root else ""
        raise CaptureError(
            f"the publication {self.publication!r} "
            + (f"leaves some {what} out" if what else "has publish_via_partition_root = false"),
            hint="drop it, and let the capture or `penstock capture role` make it",
        )

    def publication_command(self) -> str:
        """Return the SQL that makes the publication."""
        tables = f" FOR TABLE {listed(self.capture.paths)}" if self.capture.paths else ""
        options = "publish_via_partition_root = true"
        if self.generated:
            options += ", publish_generated_columns = stored"
        return f"CREATE PUBLICATION {quoted(self.publication)}{tables} WITH ({options})"

    def slot(self) -> Slot | None:
        """Return the slot, if there is one."""
        row = self.connection.execute(_SLOT, [self.slot_name]).fetchone()
        if row is None:
            return None
        pid, confirmed, _, status, plugin, database, retained, behind, name, address = row
        if plugin != "pgoutput" or database != self.database:
            raise CaptureError(
                f"the slot {self.slot_name!r} is of {plugin} in database {database!r}",
                hint="give the capture another name, or --slot",
            )
        holder = f"process {pid} of PostgreSQL ({name or 'no name'}, {address or 'local'})" if pid else ""
        return Slot(
            self.slot_name, holder, lsns.parse(confirmed) if confirmed else 0, status or "", retained, behind
        )

    def refuse_held(self, slot: Slot) -> None:
        """Two at once on one slot: the second learns who has it."""
        if slot.holder:
            raise CaptureHeldError(
                f"capture {self.capture.name!r} runs already: its slot is held by {slot.holder}",
                hint="stop that one first; a killed one is let go within wal_sender_timeout",
            )

    def snapshot(self) -> str:
        """Return which transactions are seen now, as PostgreSQL spells it."""
        return str(self._one("select pg_current_snapshot()::text"))

    def newest_transaction(self) -> int:
        """Return a number behind all transactions that are open now."""
        return int(str(self._one("select pg_snapshot_xmax(pg_current_snapshot())::text")))

    def await_free(self, seconds: float) -> None:
        """Wait until nobody reads the slot, for a while."""
        deadline = time.monotonic() + seconds
        while (slot := self.slot()) is not None and slot.holder and time.monotonic() < deadline:
            time.sleep(0.2)

    def drop_slot(self) -> bool:
        """Drop the slot, so that PostgreSQL keeps nothing for it any more."""
        slot = self.slot()
        if slot is None:
            return False
        self.refuse_held(slot)
        self.connection.execute("select pg_drop_replication_slot(%s)", [self.slot_name])
        return True

    def drop_publication(self) -> bool:
        """Drop the publication; only its owner may."""
        try:
            self.connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(self.publication)}")
        except psycopg.errors.InsufficientPrivilege:
            return False
        return True

    def heartbeat(self, content: str = "heartbeat") -> None:
        """Write a message to the log: an idle database would otherwise hold it back for ever."""
        self.emit("penstock", content)

    def emit(self, prefix: str, content: str) -> None:
        try:
            self.connection.execute("select pg_logical_emit_message(true, %s, %s)", [prefix, content])
        except psycopg.OperationalError as error:
            raise SourceError(f"can't write a message to PostgreSQL: {error}", hint="tried again") from error

    def _one(self, query: str, *arguments: object) -> object:
        row = self.connection.execute(query, arguments).fetchone()
        return None if row is None else row[0]
