"""The event store: streams of events in PostgreSQL, appended with the version that is expected."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Self

import psycopg

from penstock.errors import ConfigurationError, ConflictError, RepeatedCommandError, StoreError
from penstock.schemas import JsonCodec
from penstock.settings import Settings
from penstock.sourcing.append import Append, Context
from penstock.sourcing.database import Connection, Database
from penstock.sourcing.inserting import insert
from penstock.sourcing.personal import decrypted
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.subject_keys import SubjectKeys

Clock = Callable[[], datetime]
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_PAGE = 2_000
_LAST = """
    SELECT version, at, coalesce(transaction > pg_current_xact_id_if_assigned(), false) FROM {schema}.events
    WHERE topic = %s AND stream = %s ORDER BY version DESC LIMIT 1"""
_HELD = "SELECT id::text FROM {schema}.events WHERE topic = %s AND stream = %s AND version = %s"
_OF_COMMAND = "SELECT record::text FROM {schema}.events WHERE command = %s ORDER BY ordinal"
_PAGE_OF = """
    SELECT record::text FROM {schema}.events
    WHERE topic = %s AND stream = %s AND version > %s AND version < %s AND at <= %s
    ORDER BY version {direction} LIMIT %s"""
_FOREVER = datetime.max.replace(tzinfo=UTC)
_MOST = 2**63 - 1


class EventStore:
    """Streams of events that were appended and are never changed.

        with EventStore("bank", settings) as store:
            store.create()
            store.append(Append("account", "ada", 0, (Opened("Ada"),), account.types))

    A store is a schema of a database, the settings' own or one of its `connections`. Its events are on the
    topics `bank.account`, one for each category, as soon as `penstock store publish bank` runs. `keys` is the
    connection to the database of the keys of personal data, the same unless given. `clock` says when events
    happen, `size` how many connections it may hold.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        *,
        connection: str | None = None,
        keys: str | None = None,
        clock: Clock = lambda: datetime.now(UTC),
        size: int = 8,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{name!r} is not a store's name", hint="use up to 40 small letters, digits and _"
            )
        self.name, self.settings, self.connection_name = name, settings, connection
        self._clock = clock
        self.database = Database(settings.dsn(connection), name, size)
        self._key_database = self.database if keys is None else Database(settings.dsn(keys), name, size)
        self.keys = SubjectKeys(self._key_database)
        self._decode = JsonCodec(Recorded).decode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()
        self._key_database.close()

    def create(self) -> None:
        """Make the store's tables unless they are there."""
        self.database.create()
        self.keys.create()

    def erase(self, subject: str) -> bool:
        """Make what is personal of a subject unreadable, wherever it is; return whether it had a key."""
        return self.keys.erase(subject)

    def topic(self, category: str) -> str:
        """Return the topic of a category's events."""
        return f"{self.name}.{category}"

    def append(
        self,
        *appends: Append,
        command: str | None = None,
        context: Context | None = None,
        connection: Connection | None = None,
    ) -> list[Recorded]:
        """Append to one stream or several, all or nothing, and return what was stored.

        ConflictError says that a stream has not the version that was expected; RepeatedCommandError that
        `command` was done before, and holds its records. With `connection`, it happens in the transaction
        which that one is in, beside your own writes.
        """
        if len({(each.category, each.stream) for each in appends}) < len(appends):
            raise ConfigurationError("a stream is appended to twice at once", hint="join the events of both")
        if connection is not None:
            return self._append(connection, appends, command, context or Context())
        with self.database.asking("append"):
            return self._append_safely(appends, command, context or Context())

    def _append_safely(
        self, appends: Sequence[Append], command: str | None, context: Context
    ) -> list[Recorded]:
        """Append; where the connection was lost, look whether it happened before saying that it did not."""
        records: list[Recorded] = []
        try:
            with self.database.connection() as lent:
                return self._append(lent, appends, command, context, records)
        except psycopg.OperationalError:
            if not records:
                raise
        with self.database.connection() as lent:
            first = records[0]
            place = [self.topic(first.category), first.stream, first.version]
            if lent.execute(self.database.sql(_HELD), place).fetchone() == (first.id,):
                return records
            return self._append(lent, appends, command, context)

    def _append(
        self,
        connection: Connection,
        appends: Sequence[Append],
        command: str | None,
        context: Context,
        records: list[Recorded] | None = None,
    ) -> list[Recorded]:
        records = [] if records is None else records
        at = self._clock()
        for _ in range(3):
            records[:] = [record for each in appends for record in each.records(at, context, self.keys)]
            if not records or self._insert(connection, records, appends, command):
                return records
            at = max(at, self._checked(connection, appends))
        raise StoreError(
            f"{appends[0].category} {appends[0].stream!r} took no event: another one was later each time",
            hint=f"if the database was restored from a dump: penstock store renumber {self.name}",
        )

    def _insert(
        self,
        connection: Connection,
        records: Sequence[Recorded],
        appends: Sequence[Append],
        command: str | None,
    ) -> bool:
        try:
            return insert(self.database, connection, records, command)
        except psycopg.errors.UniqueViolation as error:
            if error.diag.constraint_name == "events_command":
                raise self._repeated(connection, str(command)) from None
            raise self._conflict(connection, appends) from None

    def _checked(self, connection: Connection, appends: Sequence[Append]) -> datetime:
        """Return the time of the newest event that the appended ones follow, or say what does not fit."""
        newest = datetime.min.replace(tzinfo=UTC)
        for each in appends:
            found = connection.execute(
                self.database.sql(_LAST), [self.topic(each.category), each.stream]
            ).fetchone()
            version, at, is_after = found or (0, newest, False)
            if version != each.expected or is_after:
                raise ConflictError(each.category, each.stream, each.expected, version)
            newest = max(newest, at)
        return newest

    def _conflict(self, connection: Connection, appends: Sequence[Append]) -> ConflictError:
        """Return which stream is not as expected; in a transaction that has failed, nobody can ask."""
        try:
            self._checked(connection, appends)
        except ConflictError as found:
            return found
        except psycopg.errors.InFailedSqlTransaction:
            pass
        first = appends[0]
        return ConflictError(first.category, first.stream, first.expected, None)

    def _repeated(self, connection: Connection, command: str) -> RepeatedCommandError:
        try:
            return RepeatedCommandError(command, self._of_command(connection, command))
        except psycopg.errors.InFailedSqlTransaction:
            return RepeatedCommandError(command, ())

    def of_command(self, command: str) -> tuple[Recorded, ...]:
        """Return the events that a command led to."""
        with self.database.asking("look for a command"), self.database.connection() as lent:
            return self._of_command(lent, command)

    def _of_command(self, connection: Connection, command: str) -> tuple[Recorded, ...]:
        rows = connection.execute(self.database.sql(_OF_COMMAND), [command]).fetchall()
        return tuple(self.decoded(text) for (text,) in rows)

    def version(self, category: str, stream: str) -> int:
        """Return how many events a stream has."""
        with self.database.asking("read a version"), self.database.connection() as lent:
            found = lent.execute(self.database.sql(_LAST), [self.topic(category), stream]).fetchone()
            return int(found[0]) if found else 0

    def read(
        self,
        category: str,
        stream: str,
        *,
        after: int = 0,
        to: int | None = None,
        until: datetime | None = None,
        backwards: bool = False,
    ) -> Iterator[Recorded]:
        """Yield a stream's events: those behind version `after`, up to version `to` and time `until`."""
        low, high = after, _MOST if to is None else to + 1
        page_of = _PAGE_OF.replace("{direction}", "DESC" if backwards else "ASC")
        while True:
            with self.database.asking("read a stream"), self.database.connection() as lent:
                given = [self.topic(category), stream, low, high, until or _FOREVER, _PAGE]
                page = [self.decoded(text) for (text,) in lent.execute(self.database.sql(page_of), given)]
            yield from page
            if len(page) < _PAGE:
                return
            low, high = (low, page[-1].version) if backwards else (page[-1].version, high)

    def decoded(self, text: str) -> Recorded:
        """Return a record of its JSON, with what is personal in the clear, or None where it was erased."""
        return decrypted(self._decode(text.encode()), self.keys)
