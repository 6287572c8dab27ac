"""The event store: streams of events in PostgreSQL, appended with the version that is expected."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Self

from penstock.errors import ConfigurationError, RepeatedCommandError
from penstock.schemas import JsonCodec
from penstock.settings import Settings
from penstock.sourcing.append import Append, Context
from penstock.sourcing.appending import Appender, Clock
from penstock.sourcing.arguments import check_moment, check_stream
from penstock.sourcing.database import Connection, Database
from penstock.sourcing.personal import decrypted
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.subject_keys import SubjectKeys

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_PAGE = 2_000
_LONGEST_ID = 500
_VERSION = "SELECT max(version) FROM {schema}.events WHERE topic = %s AND stream = %s"
_OF_COMMAND = "SELECT record::text FROM {schema}.events WHERE command = %s ORDER BY ordinal"
_PAGE_OF = """
    SELECT record::text FROM {schema}.events
    WHERE topic = %s AND stream = %s AND version > %s AND version < %s AND at <= %s
    ORDER BY version {direction} LIMIT %s"""
_STREAMS = """
    SELECT stream FROM {schema}.events WHERE topic = %s AND version = 1 AND stream > %s
    ORDER BY stream LIMIT %s"""
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
        self.database = Database(settings.dsn(connection), name, size)
        self._key_database = self.database if keys is None else Database(settings.dsn(keys), name, size)
        self.keys = SubjectKeys(self._key_database)
        self._appender = Appender(self.database, self.keys, clock)
        self._decode = JsonCodec(Recorded).decode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The database that it is in; a secret."""
        return self.settings.dsn(self.connection_name).value

    def close(self) -> None:
        self.database.close()
        self._key_database.close()

    def create(self) -> None:
        """Make the store's tables unless they are there."""
        self.database.create()
        self.keys.create()

    @property
    def is_there(self) -> bool:
        """Whether its tables were made."""
        return self.database.is_made

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
        if command is not None and not (0 < len(command) <= _LONGEST_ID and "\x00" not in command):
            raise ConfigurationError(
                f"a command's id of {len(command)} letters", hint=f"use 1 to {_LONGEST_ID} of them"
            )
        given = (appends, command, context or Context())
        try:
            with self.database.asking("append"):
                records = self._appender.append(*given, connection)
            return [decrypted(each, self.keys) for each in records]
        except RepeatedCommandError:
            if connection is not None or command is None:
                raise
        raise RepeatedCommandError(command, self.of_command(command))

    def of_command(self, command: str) -> tuple[Recorded, ...]:
        """Return the events that a command led to."""
        with self.database.asking("look for a command"), self.database.connection() as lent:
            rows = lent.execute(self.database.sql(_OF_COMMAND), [command]).fetchall()
        return tuple(self.decoded(text) for (text,) in rows)

    def version(self, category: str, stream: str) -> int:
        """Return how many events a stream has."""
        check_stream(stream)
        with self.database.asking("read a version"), self.database.connection() as lent:
            found = lent.execute(self.database.sql(_VERSION), [self.topic(category), stream]).fetchone()
        return int(found[0]) if found and found[0] else 0

    def streams(self, category: str) -> Iterator[str]:
        """Yield the names of a category's streams, in their order."""
        last = ""
        while True:
            with self.database.asking("list streams"), self.database.connection() as lent:
                given = [self.topic(category), last, _PAGE]
                page = [name for (name,) in lent.execute(self.database.sql(_STREAMS), given)]
            yield from page
            if len(page) < _PAGE:
                return
            last = page[-1]

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
        check_stream(stream)
        last = _FOREVER if until is None else check_moment(until)
        low, high = after, _MOST if to is None else to + 1
        page_of = _PAGE_OF.replace("{direction}", "DESC" if backwards else "ASC")
        while True:
            with self.database.asking("read a stream"), self.database.connection() as lent:
                given = [self.topic(category), stream, low, high, last, _PAGE]
                rows = lent.execute(self.database.sql(page_of), given).fetchall()
            page = [self.decoded(text) for (text,) in rows]
            yield from page
            if len(page) < _PAGE:
                return
            low, high = (low, page[-1].version) if backwards else (page[-1].version, high)

    def decoded(self, text: str) -> Recorded:
        """Return a record of its JSON, with what is personal in the clear, or None where it was erased."""
        return decrypted(self._decode(text.encode()), self.keys)
