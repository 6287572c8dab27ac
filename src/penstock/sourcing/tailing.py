"""The store's order, which a reader that follows it can trust."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from penstock.errors import ConfigurationError
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.store import EventStore

_PAGE = 1_000
_SHORTEST, _LONGEST = 0.005, 0.25  # seconds between two looks at a store without news
# Of transactions below the snapshot's xmin none is under way: what is there now is all there ever will be.
_NEXT = """
    SELECT transaction::text::bigint, sequence, id::text,
        CASE WHEN topic = coalesce(%s, topic) THEN record::text END
    FROM {schema}.events
    WHERE (transaction, sequence) > (%s::text::xid8, %s::bigint)
        AND transaction < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY transaction, sequence LIMIT %s"""
_ORIGIN = """
    SELECT origin.id::text, at.id::text FROM {schema}.origin LEFT JOIN {schema}.events AS at
        ON at.transaction = %s::text::xid8 AND at.sequence = %s"""
_RENUMBER = """
    LOCK TABLE {schema}.events IN ACCESS EXCLUSIVE MODE;
    ALTER TABLE {schema}.events DISABLE TRIGGER immutable;
    CREATE TEMPORARY TABLE renumbered ON COMMIT DROP AS
        SELECT topic, stream, version, id, transaction, sequence,
            row_number() OVER (ORDER BY transaction, sequence) AS place
        FROM {schema}.events;
    DROP INDEX {schema}.events_order;
    ALTER TABLE {schema}.events ALTER sequence DROP IDENTITY;
    UPDATE {schema}.events SET transaction = '3', sequence = renumbered.place FROM renumbered
        WHERE (events.topic, events.stream, events.version)
            = (renumbered.topic, renumbered.stream, renumbered.version);
    CREATE UNIQUE INDEX events_order ON {schema}.events (transaction, sequence);
    ALTER TABLE {schema}.events ALTER sequence ADD GENERATED ALWAYS AS IDENTITY;
    UPDATE {schema}.origin SET id = gen_random_uuid();
    ALTER TABLE {schema}.events ENABLE TRIGGER immutable;
    UPDATE {schema}.positions
        SET origin = (SELECT id FROM {schema}.origin), transaction = '3', sequence = renumbered.place
        FROM renumbered WHERE renumbered.id = positions.event"""
_POSITION = """
    SELECT origin::text, transaction::text::bigint, sequence, event::text FROM {schema}.positions
    WHERE reader = %s"""
_KEEP = """
    INSERT INTO {schema}.positions VALUES (%s, %s, %s::text::xid8, %s, %s)
    ON CONFLICT (reader) DO UPDATE SET (origin, transaction, sequence, event)
        = (excluded.origin, excluded.transaction, excluded.sequence, excluded.event)"""


@dataclass(frozen=True)
class Position:
    """A place in the store's order, right behind `event`; the beginning without arguments.

    >>> Position.parse(str(Position("o", 7, 3, "e")))
    Position(origin='o', transaction=7, sequence=3, event='e')

    Its text can be kept anywhere. One that does not fit the store, because that was restored, is refused.
    """

    origin: str = ""
    transaction: int = 0
    sequence: int = 0
    event: str = ""

    def __str__(self) -> str:
        return f"{self.origin}/{self.transaction}/{self.sequence}/{self.event}"

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            origin, transaction, sequence, event = text.split("/")
            return cls(origin, int(transaction), int(sequence), event)
        except ValueError:
            raise ConfigurationError(f"{text!r} is not a position of a store") from None


def tail(
    store: EventStore,
    *,
    after: Position | None = None,
    category: str | None = None,
    stopped: threading.Event | None = None,
    follow: bool = True,
) -> Iterator[tuple[Position, Recorded]]:
    """Yield all events in the store's order, each once, and wait for more until `stopped` is set.

    Events of one stream come by version, those of one append together. An event is seen when no older
    transaction that writes is under way in the database server, so that none comes in behind it.
    """
    at, stopped, pause = after or Position(), stopped or threading.Event(), _SHORTEST
    while not stopped.is_set():
        page = _page(store, at, category)
        yield from ((position, store.decoded(text)) for position, text in page if text is not None)
        if page:
            at, pause = page[-1][0], _SHORTEST  # past those of other categories, too
        elif not follow:
            return
        else:
            stopped.wait(pause)
            pause = min(2 * pause, _LONGEST)


def _page(store: EventStore, after: Position, category: str | None) -> list[tuple[Position, str | None]]:
    """Return the next events as their JSON; of those of other categories, only where they are."""
    topic = None if category is None else store.topic(category)
    database = store.database
    with database.asking("read on"), database.connection() as lent:
        place = [str(after.transaction), after.sequence]
        origin, event = lent.execute(database.sql(_ORIGIN), place).fetchone() or ("", None)
        if after != Position() and (after.origin, after.event) != (origin, event):
            raise ConfigurationError(
                f"the position {after} is not of the store {store.name!r} as it is now: it was restored",
                hint="read on from the beginning, and leave out what you have by its stream and version",
            )
        rows = lent.execute(database.sql(_NEXT), [topic, *place, _PAGE]).fetchall()
    return [(Position(origin, *where), text) for *where, text in rows]


def position_of(store: EventStore, reader: str) -> Position | None:
    """Return where a reader was, by the position that it kept."""
    with store.database.asking("read a position"), store.database.connection() as lent:
        found = lent.execute(store.database.sql(_POSITION), [reader]).fetchone()
    return Position(*found) if found else None


def keep_position(store: EventStore, reader: str, position: Position) -> None:
    """Keep where a reader is, in the store."""
    given = [reader, position.origin, str(position.transaction), position.sequence, position.event]
    with store.database.asking("keep a position"), store.database.connection() as lent:
        lent.execute(store.database.sql(_KEEP), given)


def renumber(store: EventStore) -> None:
    """Number all events anew, in their order: in a database restored from a dump, transactions begin again.

    Positions that readers keep in the store are brought along; those kept elsewhere are refused afterwards.
    Nobody may write meanwhile; the table is locked.
    """
    database = store.database
    with database.asking("number its events anew"), database.connection() as lent, lent.transaction():
        lent.execute(database.sql(_RENUMBER))
