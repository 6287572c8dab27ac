"""The repository: the state of an aggregate's streams, from the last snapshot and the events behind it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from penstock.errors import ErasedError, PenstockError
from penstock.schemas.shape import shape_of
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.append import Append
from penstock.sourcing.arguments import check_moment, check_stream
from penstock.sourcing.domain import DomainEvent
from penstock.sourcing.store import EventStore

S = TypeVar("S")
_PAGE = 5_000
_log = logging.getLogger("penstock")
_LOAD = """
    WITH kept AS (
        SELECT version, state::text AS text, taken FROM {schema}.snapshots
        WHERE topic = %(topic)s AND stream = %(stream)s AND tag = %(tag)s
            AND version <= %(to)s AND at <= %(until)s
    )
    SELECT true, version, text, taken FROM kept
    UNION ALL
    (SELECT false, version, record::text, at FROM {schema}.events
    WHERE topic = %(topic)s AND stream = %(stream)s AND version <= %(to)s AND at <= %(until)s
        AND version > greatest(%(after)s, coalesce((SELECT version FROM kept), 0))
    ORDER BY version LIMIT %(page)s)
    ORDER BY 1 DESC, 2"""
_KEEP = """
    INSERT INTO {schema}.snapshots (topic, stream, version, tag, state, at)
    SELECT topic, stream, version, %s, %s::json, at FROM {schema}.events
    WHERE topic = %s AND stream = %s AND version = %s
    ON CONFLICT (topic, stream, tag) DO UPDATE
    SET (version, state, at, taken) = (excluded.version, excluded.state, excluded.at, now())
    WHERE snapshots.version < excluded.version"""
# While two versions of the code are at work, each has its own.
_FORGET = """
    DELETE FROM {schema}.snapshots
    WHERE topic = %s AND stream = %s AND tag <> %s AND taken < now() - interval '1 day'"""
_FOREVER = datetime.max.replace(tzinfo=UTC)
_MOST = 2**63 - 1
_NO_TAG = ""


@dataclass(frozen=True)
class Loaded(Generic[S]):
    """A stream's state at a version; `behind` events were read after the snapshot of `taken`.

    `personal` says that something personal went into it, `shared` that it is of others than the stream.
    """

    state: S
    version: int = 0
    behind: int = 0
    taken: datetime | None = None
    personal: bool = False
    shared: bool = False


class Repository(Generic[S]):
    """Loads the streams of one aggregate, and keeps snapshots of them."""

    def __init__(self, store: EventStore, aggregate: Aggregate[S]) -> None:
        self.store, self.aggregate = store, aggregate
        self._topic = store.topic(aggregate.category)
        self._shape = shape_of(type(aggregate.initial))
        self._read_state: Callable[[str], Any] = msgspec.json.Decoder(self._shape.lenient).decode

    def load(self, stream: str, *, to: int | None = None, until: datetime | None = None) -> Loaded[S]:
        """Return a stream's state: now, at version `to`, or at the time `until`."""
        given: dict[str, object] = {
            "topic": self._topic,
            "stream": check_stream(stream),
            "to": _MOST if to is None else to,
            "until": _FOREVER if until is None else check_moment(until),
            "page": _PAGE,
        }
        try:
            return self._loaded(stream, given | {"tag": self.aggregate.tag})
        except ErasedError:  # the snapshot is unreadable, and the events say what is left
            return self._loaded(stream, given | {"tag": _NO_TAG})

    def appending(self, stream: str, expected: int, events: tuple[DomainEvent, ...]) -> Append:
        """Return events for a stream."""
        return Append(self.aggregate.category, stream, expected, events, self.aggregate.types)

    def after(self, loaded: Loaded[S], append: Append) -> Loaded[S]:
        """Return what a stream comes to with what is appended; an event that `evolve` can't take is not."""
        events, types = append.events, self.aggregate.types
        return replace(
            loaded,
            state=self.aggregate.fold(events, loaded.state),
            version=loaded.version + len(events),
            behind=loaded.behind + len(events),
            personal=loaded.personal or types.are_personal,
            shared=loaded.shared or types.have_other_subjects,
        )

    def keep_if_due(self, stream: str, loaded: Loaded[S]) -> None:
        """Keep a snapshot; a stream is complete without it, so that nothing fails because of one."""
        if not self.aggregate.snapshots.is_due(loaded.behind, loaded.taken, datetime.now(UTC)):
            return
        try:
            self.keep(stream, loaded)
        except PenstockError as error:
            _log.warning("no snapshot of %s %r: %s", self.aggregate.category, stream, error)

    def keep(self, stream: str, loaded: Loaded[S]) -> None:
        """Keep a snapshot of a stream's state; of one that was erased, or is about others, none is."""
        if loaded.shared:
            return
        state, tag = msgspec.json.encode(loaded.state).decode(), self.aggregate.tag
        if loaded.personal:
            try:
                sealed = self.store.keys.encrypt(stream, state, self._place(stream, loaded.version))
            except ErasedError:
                return
            state = msgspec.json.encode(sealed).decode()
        database = self.store.database
        with database.asking("keep a snapshot"), database.connection() as lent:
            lent.execute(database.sql(_KEEP), [tag, state, self._topic, stream, loaded.version])
            lent.execute(database.sql(_FORGET), [self._topic, stream, tag])

    def _loaded(self, stream: str, given: dict[str, object]) -> Loaded[S]:
        found: Loaded[S] = Loaded(self.aggregate.initial)
        database = self.store.database
        while True:
            with database.asking("load a stream"), database.connection() as lent:
                rows = lent.execute(database.sql(_LOAD), given | {"after": found.version}).fetchall()
            before = found.version
            for is_snapshot, version, text, at in rows:
                if not is_snapshot:
                    found = self._with_event(found, version, text, at)
                elif version > found.version:
                    state, personal = self._state(stream, version, text)
                    found = Loaded(state, version, 0, at, personal)
            if len(rows) < _PAGE or found.version == before:
                return found

    def _with_event(self, found: Loaded[S], version: int, text: str, at: datetime) -> Loaded[S]:
        record = self.store.decoded(text)
        state = self.aggregate.fold(self.aggregate.types.events_of(record), found.state)
        return Loaded(
            state,
            version,
            found.behind + 1,
            found.taken or at,
            found.personal or bool(record.personal),
            found.shared or record.subject not in (None, record.stream),
        )

    def _state(self, stream: str, version: int, text: str) -> tuple[S, bool]:
        """Return a kept state, and whether it was sealed: then it is a text, and not an object."""
        is_sealed = text.startswith('"')
        if is_sealed:
            sealed = msgspec.json.decode(text, type=str)
            revealed = self.store.keys.decrypt(stream, sealed, self._place(stream, version))
            if revealed is None:
                raise ErasedError(stream)
            text = revealed
        return self._shape.revive(self._read_state(text)), is_sealed

    def _place(self, stream: str, version: int) -> str:
        return f"{self.aggregate.category}/{stream}/{version}/snapshot"
