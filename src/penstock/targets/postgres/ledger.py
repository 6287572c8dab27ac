"""The ledger in PostgreSQL: one row for each sink, written in the transaction that writes the batch."""

from dataclasses import replace

from penstock.errors import LedgerError
from penstock.log.ledger import Entry
from penstock.settings import Secret, Settings
from penstock.targets.postgres.connection import Connection, asking, connect
from penstock.targets.postgres.table import DeclaredTable

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('penstock', 0))"
_CREATE = """
    CREATE TABLE penstock.ledger (
        sink text PRIMARY KEY,
        epoch bigint NOT NULL,
        checkpoint text,
        batch bigint,
        entry jsonb,
        at timestamptz NOT NULL DEFAULT now()
    )"""
_TAKE_OVER = """
    INSERT INTO penstock.ledger (sink, epoch) VALUES (%s, 1)
    ON CONFLICT (sink) DO UPDATE SET epoch = ledger.epoch + 1, at = now()
    RETURNING epoch, entry::text"""
_READ = "SELECT epoch, entry::text FROM penstock.ledger WHERE sink = %s"
_WRITE = """
    UPDATE penstock.ledger SET checkpoint = %s, batch = %s, entry = %s::jsonb, at = now() WHERE sink = %s"""


def prepare(connection: Connection) -> None:
    """Make the ledger if there is none; two processes may do so at once."""
    with connection.transaction():
        connection.execute(_LOCK)
        # Asked for first: a role that may not create schemas may still use one that is there.
        if _missing(connection, "to_regnamespace('penstock')"):
            connection.execute("CREATE SCHEMA penstock")
        if _missing(connection, "to_regclass('penstock.ledger')"):
            connection.execute(_CREATE)


def take_over(connection: Connection, sink: str) -> Entry:
    """Begin a new epoch, in which this process is the only writer, and return what was written before."""
    with connection.transaction():
        found = connection.execute(_TAKE_OVER, [sink]).fetchone()
    return _entry(sink, found)


def read(connection: Connection, sink: str, *, lock: bool = False) -> Entry:
    """Return a sink's entry; with `lock`, nobody else changes it before the transaction ends."""
    found = connection.execute(_READ + (" FOR UPDATE" if lock else ""), [sink]).fetchone()
    return _entry(sink, found)


def peek(connection: Connection, sink: str) -> Entry:
    """Return a sink's entry; one that was never opened has written nothing."""
    found = connection.execute(_READ, [sink]).fetchone()
    return Entry() if found is None else _entry(sink, found)


def write_down(connection: Connection, sink: str, entry: Entry) -> None:
    """Write down the batch that the open transaction takes in."""
    batch = entry.batch
    place = (batch.checkpoint, batch.number) if batch else (None, None)
    connection.execute(_WRITE, [*place, entry.to_json().decode(), sink])


def last_entry(settings: Settings, table: DeclaredTable, id: str) -> Entry | None:
    """Return what a sink has written down last, or None if it was never opened."""
    with asking("read the ledger"), connect(table.address(settings), id) as connection:
        if _missing(connection, "to_regclass('penstock.ledger')"):
            return None
        found = connection.execute(_READ, [id]).fetchone()
        return _entry(id, found) if found else None


def forget_sink(address: Secret, id: str) -> bool:
    """Remove the row of a sink in a database; False if there was none."""
    with asking("read the ledger"), connect(address, id) as connection:
        if _missing(connection, "to_regclass('penstock.ledger')"):
            return False
        return bool(connection.execute("DELETE FROM penstock.ledger WHERE sink = %s", [id]).rowcount)


def _missing(connection: Connection, lookup: str) -> bool:
    found = connection.execute(f"SELECT {lookup} IS NULL".encode()).fetchone()
    return bool(found and found[0])


def _entry(sink: str, found: tuple[int, str | None] | None) -> Entry:
    if found is None:
        raise LedgerError(
            f"the ledger has no row of sink {sink!r}",
            hint="somebody removed it while the flow ran: bring it back, or start the flow anew",
        )
    epoch, text = found
    return replace(Entry.from_json(text), epoch=epoch) if text else Entry(epoch)
