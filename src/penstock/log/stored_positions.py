"""A group's positions in an application's own database, moved in the transaction that holds its writes."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from confluent_kafka import TopicPartition
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from penstock.errors import ConfigurationError, FencedError, PenstockError, TryAgainError
from penstock.events import new_id
from penstock.log.identity import mark

Connection = psycopg.Connection[Any]
Cursor = psycopg.Cursor[tuple[Any, ...]]
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('penstock', 0))"
_EXISTS = "SELECT to_regnamespace('penstock') IS NOT NULL, to_regclass('penstock.positions') IS NOT NULL"
_CREATE = """
    CREATE TABLE penstock.positions (
        group_name text,
        topic text,
        partition integer,
        topic_id text,
        next_offset bigint NOT NULL,
        owner text NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (group_name, topic, partition)
    )"""
_SEARCHED = "SELECT current_setting('search_path')"
_PATIENCE = "SELECT set_config('lock_timeout', %s, true)"
_CLAIM = """
    INSERT INTO penstock.positions (group_name, topic, partition, topic_id, next_offset, owner)
    VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (group_name, topic, partition) DO UPDATE
    SET owner = excluded.owner, topic_id = coalesce(positions.topic_id, excluded.topic_id)
    RETURNING next_offset, topic_id"""
_OWNED = """
    SELECT partition, next_offset FROM penstock.positions
    WHERE group_name = %s AND topic = %s AND owner = %s AND partition = ANY(%s)"""
_MOVE = """
    UPDATE penstock.positions SET next_offset = %s, at = now()
    WHERE group_name = %s AND topic = %s AND partition = %s AND owner = %s AND next_offset = %s"""


class StoredPositions:
    """The rows of a group and a topic in `penstock.positions`, of which one member owns each at a time.

    Who is given a partition claims its row. That waits for a transaction in which the owner before is, and
    shuts that owner out of any other: it can move the row no more.
    """

    def __init__(self, connection: Connection, group: str, topic: str, timeout: timedelta) -> None:
        self._connection = connection
        self._group, self._topic = group, topic
        self._patience = f"{timeout // timedelta(milliseconds=1)}ms"
        self._owner = new_id()
        self._at: dict[int, int] = {}  # partition → the offset that its row has

    @property
    def forget(self) -> str:
        """The statement after which the group has no positions in the topic."""
        group, topic = self._group, self._topic  # neither has a quotation mark in it
        return f"DELETE FROM penstock.positions WHERE group_name = '{group}' AND topic = '{topic}'"  # noqa: S608

    def skip(self, partition: int, first: int) -> str:
        """The statement after which the group goes on in a partition with the first event that is left."""
        return (
            f"UPDATE penstock.positions SET next_offset = {first} WHERE group_name = '{self._group}' "  # noqa: S608
            f"AND topic = '{self._topic}' AND partition = {partition}"
        )

    def prepare(self) -> None:
        """Make the table if there is none; a role that may not create schemas may use one that is there."""
        with _asking("make the table penstock.positions"), self._transaction() as cursor:
            cursor.execute(_LOCK)
            self._refuse_own_schema(cursor)
            has_schema, has_table = cursor.execute(_EXISTS).fetchone() or (True, True)
            if not has_schema:
                cursor.execute("CREATE SCHEMA penstock")
            if not has_table:
                cursor.execute(_CREATE)

    def _refuse_own_schema(self, cursor: Cursor) -> None:
        """Refuse to hide an application's tables: a role's own schema comes first where names have none."""
        (path,) = cursor.execute(_SEARCHED).fetchone() or ("",)
        first = path.split(",")[0].strip().strip('"')
        user = self._connection.info.user
        if (user if first == "$user" else first) == "penstock":
            raise ConfigurationError(
                f"the search path of role {user!r} begins with the schema penstock ({path}), which is ours: "
                "your tables without a schema would be made there",
                hint=f"ALTER ROLE {user} SET search_path = public, or another role",
            )

    def claim(self, starts: Iterable[TopicPartition], id: str | None) -> list[TopicPartition]:
        """Own the rows of partitions, made at `starts` where there are none, and return what they have."""
        what = f"claim the positions of group {self._group!r} in {self._topic!r}"
        with _asking(what), self._transaction() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(_PATIENCE, [self._patience])
            ordered = sorted(starts, key=lambda start: start.partition)  # so that no two wait for each other
            found = [self._claimed(cursor, start, id) for start in ordered]
        self._at.update({each.partition: each.offset for each in found})
        return found

    def _claimed(self, cursor: Cursor, start: TopicPartition, id: str | None) -> TopicPartition:
        row = [self._group, self._topic, start.partition, id, start.offset, self._owner]
        [(offset, known)] = cursor.execute(_CLAIM, row).fetchall()
        return mark(TopicPartition(self._topic, start.partition, offset), known)

    def owned(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the offsets of those partitions that are still owned, as they were committed last."""
        with _asking(f"read the positions of group {self._group!r}"), self._transaction() as cursor:
            row = [self._group, self._topic, self._owner, list(partitions)]
            found = {int(each[0]): int(each[1]) for each in cursor.execute(_OWNED, row)}
        self._at.update(found)
        return found

    def release(self, partitions: Iterable[int]) -> None:
        """Forget partitions that are another member's now; it claims them."""
        for partition in partitions:
            self._at.pop(partition, None)

    @contextmanager
    def moving(self, ends: Mapping[int, int]) -> Iterator[None]:
        """Open a transaction that moves the positions to `ends`, and commit it after the body.

        They are moved first: from then on whoever wants to claim them waits, and writes nothing beside us.
        """
        with self._transaction() as cursor:
            self._move(cursor, ends)
            yield
            self._refuse_unless(TransactionStatus.INTRANS, _FAILED)
        self._at.update(ends)

    def _move(self, cursor: Cursor, ends: Mapping[int, int]) -> None:
        rows = [
            (end, self._group, self._topic, partition, self._owner, self._at.get(partition))
            for partition, end in sorted(ends.items())
        ]
        with _asking(f"move the positions of group {self._group!r}"):
            try:
                cursor.executemany(_MOVE, rows)
                moved = cursor.rowcount
            except psycopg.errors.SerializationFailure:
                moved = 0
        if moved != len(rows):
            raise FencedError(
                f"another member of group {self._group!r} has taken over partitions of {self._topic!r}, or "
                f"their positions in the database were changed: among {sorted(ends)}",
                hint="nothing was written, and the batch is read again by whom the group gives it to",
            )

    @contextmanager
    def _transaction(self) -> Iterator[Cursor]:
        self.refuse_open_transaction()
        with (
            self._connection.transaction(),
            psycopg.Cursor(self._connection, row_factory=tuple_row) as cursor,
        ):
            yield cursor

    def refuse_open_transaction(self) -> None:
        """Refuse a connection with a transaction of its user's: ours would be a part of it."""
        self._refuse_unless(TransactionStatus.IDLE, _OPEN)

    def _refuse_unless(self, wanted: TransactionStatus, hint: str) -> None:
        seen = self._connection.info.transaction_status
        if seen not in (wanted, TransactionStatus.UNKNOWN):  # one that is lost says so itself
            raise ConfigurationError(
                f"the connection's transaction is {seen.name}, not {wanted.name}", hint=hint
            )


_OPEN = "end the transaction that is open, or connect with autocommit=True"
_FAILED = (
    "leave its end to the loop, and where an error of the database is caught, put the statement into "
    "`with connection.transaction():`"
)


@contextmanager
def _asking(what: str) -> Iterator[None]:
    """Turn the database's errors into ours: what was asked, what it said, what to do."""
    try:
        yield
    except psycopg.Error as error:
        raise _explained(what, error) from error


def _explained(what: str, error: psycopg.Error) -> PenstockError:
    text = f"can't {what}: {error.diag.message_primary or ' '.join(str(error).split())}"
    match error:
        case psycopg.errors.LockNotAvailable():
            hint = "another member has a transaction open: read on, which waits for it, or end its connection"
            return TryAgainError(text, hint=hint)
        case psycopg.ProgrammingError():
            return ConfigurationError(text, hint="the role has to read and write penstock.positions")
    return TryAgainError(text, hint="is the database up? connect anew and make another consumer")
