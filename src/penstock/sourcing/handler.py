"""Commands handled: load the state, decide, append; decide again where somebody else was faster."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from penstock.errors import ConfigurationError, ConflictError, RefusedError, RepeatedCommandError
from penstock.events import new_id
from penstock.schemas.shape import shape_of
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.append import Append, Context
from penstock.sourcing.domain import Command, DomainEvent, Refusal
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.store import EventStore

S = TypeVar("S")
T = TypeVar("T")
_RETRIES = 20
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
    ORDER BY version LIMIT 5000)
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


@dataclass(frozen=True)
class Loaded(Generic[S]):
    """A stream's state at a version; `behind` events were read after the snapshot of `taken`."""

    state: S
    version: int = 0
    behind: int = 0
    taken: datetime | None = None


@dataclass(frozen=True)
class Receipt:
    """What a command led to: its events in the stream, at which version, and whether it was done before."""

    category: str
    stream: str
    version: int
    records: tuple[Recorded, ...]
    repeated: bool = False


class CommandHandler(Generic[S]):
    """Takes commands to the streams of one aggregate.

        accounts = CommandHandler(store, account)
        accounts.execute("ada", Deposit(100), id="deposit-1", actor="teller 3")

    A refusal is raised as RefusedError. Where another writer was faster, it decides again on the new state,
    up to `retries` times. A command that comes again with the same `id` is not done again: its receipt is
    that of the first time.
    """

    def __init__(self, store: EventStore, aggregate: Aggregate[S], *, retries: int = _RETRIES) -> None:
        self.store, self.aggregate, self._retries = store, aggregate, retries
        self._shape = shape_of(type(aggregate.initial))
        self._read_state: Callable[[str], Any] = msgspec.json.Decoder(self._shape.lenient).decode

    def execute(
        self,
        stream: str,
        command: Command,
        *,
        id: str | None = None,
        actor: str | None = None,
        correlation: str | None = None,
        causation: str | None = None,
    ) -> Receipt:
        """Handle a command, and return its receipt."""
        if id is not None and (done := self.store.of_command(id)):
            return self.repeated(stream, done)
        cause = causation or id or new_id()
        context = Context(actor, correlation or cause, cause)
        try:
            return retried(lambda: self._once(stream, command, id, context), self._retries)
        except RepeatedCommandError as repeated:
            return self.repeated(stream, repeated.records)  # type: ignore[arg-type]

    def decide(self, loaded: Loaded[S], stream: str, command: Command) -> Append:
        """Return what a command adds to a stream, or raise why it is refused."""
        decided = self.aggregate.decided(loaded.state, command)
        if isinstance(decided, Refusal):
            raise RefusedError(type(command).__name__, decided)
        return self.appending(stream, loaded.version, decided)

    def appending(self, stream: str, expected: int, events: tuple[DomainEvent, ...]) -> Append:
        """Return events for a stream."""
        return Append(self.aggregate.category, stream, expected, events, self.aggregate.types)

    def load(self, stream: str, *, to: int | None = None, until: datetime | None = None) -> Loaded[S]:
        """Return a stream's state: now, at version `to`, or at the time `until`."""
        topic = self.store.topic(self.aggregate.category)
        given: dict[str, object] = {
            "topic": topic,
            "stream": stream,
            "tag": self.aggregate.tag,
            "to": _MOST if to is None else to,
            "until": until or _FOREVER,
        }
        found: Loaded[S] = Loaded(self.aggregate.initial)
        while True:
            with self.store.database.asking("load a stream"), self.store.database.connection() as lent:
                given["after"] = found.version
                rows = lent.execute(self.store.database.sql(_LOAD), given).fetchall()
            read = found
            for is_snapshot, version, text, at in rows:
                read = self._with(read, is_snapshot, version, text, at)
            if read.version == found.version or read.behind - found.behind < 5000:
                return read
            found = read

    def _with(self, at: Loaded[S], is_snapshot: bool, version: int, text: str, when: datetime) -> Loaded[S]:
        if is_snapshot:
            if version <= at.version:
                return at
            return Loaded(self._shape.revive(self._read_state(text)), version, 0, when)
        events = self.aggregate.types.events_of(self.store.decoded(text))
        state = self.aggregate.fold(events, at.state)
        return Loaded(state, version, at.behind + 1, at.taken or when)

    def _once(self, stream: str, command: Command, id: str | None, context: Context) -> Receipt:
        loaded = self.load(stream)
        append = self.decide(loaded, stream, command)
        records = tuple(self.store.append(append, command=id, context=context)) if append.events else ()
        self.keep_if_due(stream, loaded, append)
        return Receipt(self.aggregate.category, stream, loaded.version + len(records), records)

    def keep_if_due(self, stream: str, loaded: Loaded[S], append: Append) -> None:
        """Keep a snapshot; a stream is complete without it."""
        behind = loaded.behind + len(append.events)
        if self.aggregate.snapshots.is_due(behind, loaded.taken, datetime.now(UTC)):
            state = self.aggregate.fold(append.events, loaded.state)
            self.keep(stream, replace(loaded, state=state, version=loaded.version + len(append.events)))

    def keep(self, stream: str, loaded: Loaded[S]) -> None:
        """Keep a snapshot of a stream's state."""
        state = msgspec.json.encode(loaded.state).decode()
        topic = self.store.topic(self.aggregate.category)
        with self.store.database.asking("keep a snapshot"), self.store.database.connection() as lent:
            lent.execute(
                self.store.database.sql(_KEEP), [self.aggregate.tag, state, topic, stream, loaded.version]
            )

    def repeated(self, stream: str, records: Sequence[Recorded]) -> Receipt:
        """Return the receipt of a command that was done before."""
        category = self.aggregate.category
        own = tuple(each for each in records if (each.category, each.stream) == (category, stream))
        if not own:
            raise ConfigurationError(
                f"the command's id was used before, for {records[0].category} {records[0].stream!r}",
                hint="give each command an id of its own",
            )
        return Receipt(category, stream, own[-1].version, own, repeated=True)


def retried(attempt: Callable[[], T], retries: int = _RETRIES) -> T:
    """Return what an attempt returns, made again as long as it meets conflicts."""
    for done in range(retries):
        try:
            return attempt()
        except ConflictError:
            time.sleep(random.uniform(0, min(0.001 * 2**done, 0.1)))  # noqa: S311
    return attempt()
