"""The repository: the state of an aggregate's streams, from the last snapshot and the events behind it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from penstock.errors import ErasedError
from penstock.schemas.shape import shape_of
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.append import Append
from penstock.sourcing.domain import DomainEvent
from penstock.sourcing.store import EventStore

S = TypeVar("S")
_PAGE = 5_000
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
    ON CONFLICT (topic, stream) DO UPDATE
    SET (version, tag, state, at, taken)
        = (excluded.version, excluded.tag, excluded.state, excluded.at, now())
    WHERE snapshots.version < excluded.version OR snapshots.tag <> excluded.tag"""
_FOREVER = datetime.max.replace(tzinfo=UTC)
_MOST = 2**63 - 1
_NO_TAG = ""


@dataclass(frozen=True)
class Loaded(Generic[S]):
    """A stream's state at a version; `behind` events were read after the snapshot of `taken`."""

    state: S
    version: int = 0
    behind: int = 0
    taken: datetime | None = None


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
            "stream": stream,
            "to": _MOST if to is None else to,
            "until": until or _FOREVER,
            "page": _PAGE,
        }
        try:
            return self._loaded(stream, given | {"tag": self.aggregate.tag})
        except ErasedError:  # the snapshot is unreadable, and the events say what is left
            return self._loaded(stream, given | {"tag": _NO_TAG})

    def appending(self, stream: str, expected: int, events: tuple[DomainEvent, ...]) -> Append:
        """Return events for a stream."""
        return Append(self.aggregate.category, stream, expected, events, self.aggregate.types)

    def keep_if_due(self, stream: str, loaded: Loaded[S], append: Append) -> None:
        """Keep a snapshot of what was loaded and appended; a stream is complete without it."""
        behind = loaded.behind + len(append.events)
        if self.aggregate.snapshots.is_due(behind, loaded.taken, datetime.now(UTC)):
            state = self.aggregate.fold(append.events, loaded.state)
            self.keep(stream, replace(loaded, state=state, version=loaded.version + len(append.events)))

    def keep(self, stream: str, loaded: Loaded[S]) -> None:
        """Keep a snapshot of a stream's state; of one that was erased, none is."""
        state = msgspec.json.encode(loaded.state).decode()
        if self.aggregate.types.are_personal:
            try:
                sealed = self.store.keys.encrypt(stream, state, self._place(stream, loaded.version))
            except ErasedError:
                return
            state = msgspec.json.encode(sealed).decode()
        database = self.store.database
        with database.asking("keep a snapshot"), database.connection() as lent:
            given = [self.aggregate.tag, state, self._topic, stream, loaded.version]
            lent.execute(database.sql(_KEEP), given)

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
                    found = Loaded(self._state(stream, version, text), version, 0, at)
            if len(rows) < _PAGE or found.version == before:
                return found

    def _with_event(self, found: Loaded[S], version: int, text: str, at: datetime) -> Loaded[S]:
        events = self.aggregate.types.events_of(self.store.decoded(text))
        state = self.aggregate.fold(events, found.state)
        return Loaded(state, version, found.behind + 1, found.taken or at)

    def _state(self, stream: str, version: int, text: str) -> S:
        if self.aggregate.types.are_personal:
            sealed = msgspec.json.decode(text, type=str)
            revealed = self.store.keys.decrypt(stream, sealed, self._place(stream, version))
            if revealed is None:
                raise ErasedError(stream)
            text = revealed
        state: S = self._shape.revive(self._read_state(text))
        return state

    def _place(self, stream: str, version: int) -> str:
        return f"{self.aggregate.category}/{stream}/{version}/snapshot"
