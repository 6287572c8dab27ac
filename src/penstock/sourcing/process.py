"""Processes: what happened in one stream leads to commands for others, through crashes, each once."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from penstock.errors import ConfigurationError, RefusedError
from penstock.points import reach
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.domain import DomainEvent, Refusal
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.store import EventStore
from penstock.sourcing.tailing import Position, keep_position, position_of, tail
from penstock.sourcing.together import Directed, execute_together

_log = logging.getLogger("penstock")
_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_KEPT_EVERY = 100  # events between two kept positions


@dataclass(frozen=True)
class Reaction:
    """Commands that are done together, and, where one of them is refused, those that are done instead."""

    commands: tuple[Directed, ...]
    otherwise: Callable[[Refusal], tuple[Directed, ...]] | None = None


React = Callable[[Recorded, DomainEvent], Iterable[Reaction]]


class Process:
    """Follows a store and reacts to its events.

    `react` gets each event of the aggregates and returns reactions. Their commands have ids that are made of
    the event's, so that an event which is seen again after a crash leads to nothing new. A refusal without
    `otherwise` is logged: nothing follows from it. One instance of a name works at a time.
    """

    def __init__(
        self, name: str, store: EventStore, aggregates: Iterable[Aggregate[object]], react: React
    ) -> None:
        self.name, self._store, self._react = name, store, react
        self._aggregates: Mapping[str, Aggregate[object]] = {each.category: each for each in aggregates}

    def run(self, stopped: threading.Event | None = None, *, follow: bool = True) -> int:
        """React to events until `stopped` is set, or, without `follow`, to those that are there."""
        reader, handled, at = f"process {self.name}", 0, None
        with self._alone():
            start = position_of(self._store, reader)
            for at, record in tail(self._store, after=start, stopped=stopped, follow=follow):
                self._handle(record)
                handled += 1
                if handled % _KEPT_EVERY == 0:
                    self._keep(reader, at)
            if at is not None:
                self._keep(reader, at)
        return handled

    def _keep(self, reader: str, at: Position) -> None:
        reach("process.before-position", self.name)
        keep_position(self._store, reader, at)

    def _handle(self, record: Recorded) -> None:
        aggregate = self._aggregates.get(record.category)
        if aggregate is None:
            return
        events = aggregate.types.events_of(record)
        reactions = (each for event in events for each in self._react(record, event))
        for place, reaction in enumerate(reactions):
            self._do(record, reaction, f"{self.name}/{record.id}/{place}")

    def _do(self, record: Recorded, reaction: Reaction, id: str) -> None:
        """Do what a reaction asks; what was done instead of it before the process died stays done."""
        instead = f"{id}/otherwise"
        if reaction.otherwise and self._store.of_command(instead):
            return
        try:
            self._execute(reaction.commands, id, record)
        except RefusedError as refused:
            reach("process.refused", self.name)
            others = reaction.otherwise(refused.refusal) if reaction.otherwise else ()  # type: ignore[arg-type]
            if others:
                self._execute(others, instead, record)
            else:
                _log.info("process %s: %s (%s)", self.name, refused, id)

    def _execute(self, commands: tuple[Directed, ...], id: str, record: Recorded) -> None:
        reach("process.before-command", self.name)
        execute_together(
            commands,
            id=id,
            actor=f"process {self.name}",
            correlation=record.correlation,
            causation=record.id,
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of this process's name, which goes with its connection."""
        with self._store.database.connection() as lent:
            key = f"{self._store.name} process {self.name}"
            if lent.execute(_LOCK, [key]).fetchone() != (True,):
                raise ConfigurationError(
                    f"the process {self.name!r} runs already", hint="one instance works at a time"
                )
            try:
                yield
            finally:
                lent.execute("SELECT pg_advisory_unlock_all()")
