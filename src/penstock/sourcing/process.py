"""Processes: what happened in one stream leads to commands for others, through crashes, each once."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from penstock.errors import ConfigurationError, RefusedError, RepeatedCommandError, TryAgainError
from penstock.points import reach
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.append import Context
from penstock.sourcing.database import Connection
from penstock.sourcing.domain import DomainEvent, Refusal
from penstock.sourcing.handler import retried
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.store import EventStore
from penstock.sourcing.tailing import Position, keep_position, position_of, tail
from penstock.sourcing.together import Directed, once

_log = logging.getLogger("penstock")
_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_UNLOCK = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
_KEPT_EVERY = 100  # events between two kept positions
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_TRIES = 3  # of a reaction and what is done instead, where the state changes between the two
_PATIENCE = 10.0  # seconds in which the server notices that the one before was killed
_FIRST_PAUSE, _LONGEST_PAUSE, _LONG_ENOUGH = 0.2, 10.0, 60.0


@dataclass(frozen=True)
class Reaction:
    """Commands that are done together, and, where one of them is refused, those that are done instead.

    Of the two, exactly one is done. `otherwise` gets the refusal; what it returns may not be refused, too. If
    it returns nothing, nothing follows.
    """

    commands: tuple[Directed, ...]
    otherwise: Callable[[Refusal], tuple[Directed, ...]] | None = None


React = Callable[[Recorded, DomainEvent], Iterable[Reaction]]


class Process:
    """Follows a store and reacts to its events.

    `react` gets each event of the aggregates and returns reactions, the same ones whenever it is asked. A
    reaction's commands have an id that is made of the event's, as have those that are done instead, so that
    an event which is seen again after a crash leads to nothing new. A refusal without `otherwise` is logged:
    nothing follows from it, and it is not asked again. One instance of a name works at a time.
    """

    def __init__(
        self, name: str, store: EventStore, aggregates: Iterable[Aggregate[Any]], react: React
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"{name!r} is not a process's name", hint="use letters, digits, _ and -")
        self.name, self._store, self._react = name, store, react
        self._aggregates: Mapping[str, Aggregate[Any]] = {each.category: each for each in aggregates}
        self.handled = 0

    def run(self, stopped: threading.Event | None = None, *, follow: bool = True) -> int:
        """React to events until `stopped` is set, or, without `follow`, to those that are there.

        Following, it goes on by itself when the database is back, or a conflict over. Returns how many events
        it has seen.
        """
        stopped, pause = stopped or threading.Event(), _FIRST_PAUSE
        before = self.handled
        while not stopped.is_set():
            begun = time.monotonic()
            try:
                self._run(stopped, follow)
                break
            except TryAgainError as error:
                if not follow:
                    raise
                pause = _FIRST_PAUSE if time.monotonic() - begun > _LONG_ENOUGH else pause
                _log.warning("process %s: %s; again in %.1f s", self.name, error, pause)
                stopped.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        return self.handled - before

    def _run(self, stopped: threading.Event, follow: bool) -> None:
        at: Position | None = None
        only = next(iter(self._aggregates)) if len(self._aggregates) == 1 else None
        with self._alone(stopped) as lock:
            start = position_of(self._store, self._reader)
            news = tail(self._store, after=start, category=only, stopped=stopped, follow=follow)
            for at, record in news:
                is_stored = self._handle(record, lock)
                self.handled += 1
                # A refusal leaves nothing in the store: seen again, it might be none any more.
                if not is_stored or self.handled % _KEPT_EVERY == 0:
                    self._keep(at)
                if stopped.is_set():
                    break
            if at is not None:
                self._keep(at)

    @property
    def _reader(self) -> str:
        return f"process {self.name}"

    def _keep(self, at: Position) -> None:
        reach("process.before-position", self.name)
        keep_position(self._store, self._reader, at)

    def _handle(self, record: Recorded, lock: Connection) -> bool:
        """React to an event; returns whether the store has what was decided, for when it is seen again."""
        aggregate = self._aggregates.get(record.category)
        if aggregate is None:
            return True
        events = aggregate.types.events_of(record)
        reactions = [each for event in events for each in self._reactions(record, event)]
        if not reactions:
            return True
        lock.execute("SELECT")  # raises if the lock is gone with its connection
        ids = [f"{self.name}/{record.id}/{place}" for place in range(len(reactions))]
        first = self._first_undone(ids)
        done = [self._do(record, reactions[place], ids[place]) for place in range(first, len(ids))]
        return all(done)

    def _reactions(self, record: Recorded, event: DomainEvent) -> list[Reaction]:
        found = self._react(record, event)
        try:
            made = list(found)
        except TypeError:
            made = [found]  # type: ignore[list-item]
        stranger = next((each for each in made if not isinstance(each, Reaction)), None)
        if stranger is not None or found is None:
            raise ConfigurationError(
                f"process {self.name!r} reacts to a {type(event).__name__} with {stranger!r:.100}",
                hint="return a list of Reaction(commands=(Directed(…),)), empty where nothing follows",
            )
        return made

    def _first_undone(self, ids: list[str]) -> int:
        """Reactions are done in order: what stands before one that was done is decided, were it refused."""
        for place in reversed(range(len(ids))):
            if self._store.of_command(ids[place]):
                return place + 1
        return 0

    def _do(self, record: Recorded, reaction: Reaction, id: str) -> bool:
        """Do what a reaction asks, or what is to be done instead; returns whether the store has it."""
        for _ in range(_TRIES):
            try:
                return self._execute(reaction.commands, id, record)
            except RefusedError as refused:
                reach("process.refused", self.name)
                others = reaction.otherwise(refused.refusal) if reaction.otherwise else ()  # type: ignore[arg-type]
                if not others:
                    _log.info("process %s: %s (%s)", self.name, refused, id)
                    return False
                reason = refused
            try:
                return self._execute(others, id, record)
            except RefusedError as refused:
                _log.info("process %s: instead of what was refused: %s (%s)", self.name, refused, id)
        raise ConfigurationError(
            f"process {self.name!r} can't go on behind event {record.version} of {record.category} "
            f"{record.stream!r}: {reason}, and what is to be done instead was refused, too",
            hint="change the process, or the streams, so that one of the two is possible",
        )

    def _execute(self, commands: tuple[Directed, ...], id: str, record: Recorded) -> bool:
        reach("process.before-command", self.name)
        context = Context(self._reader, record.correlation or record.id, record.id)
        try:
            receipts = retried(lambda: once(commands, id, context))
        except RepeatedCommandError:
            return True  # by another instance, whose lock was lost
        reach("process.done", self.name)
        return any(each.records for each in receipts)

    @contextmanager
    def _alone(self, stopped: threading.Event) -> Iterator[Connection]:
        """Hold the lock of this process's name, which goes with its connection."""
        key = f"{self._store.name} process {self.name}"
        with self._store.database.asking("let a process work"), self._store.database.connection() as lent:
            until = time.monotonic() + _PATIENCE
            while lent.execute(_LOCK, [key]).fetchone() != (True,) and not stopped.wait(0.1):
                if time.monotonic() > until:
                    raise ConfigurationError(
                        f"the process {self.name!r} runs already", hint="one instance works at a time"
                    )
            try:
                yield lent
            finally:
                with suppress(psycopg.Error):
                    lent.execute(_UNLOCK, [key])
