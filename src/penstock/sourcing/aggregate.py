"""Aggregates: state that is folded from events, and decisions about commands. Pure functions, no I/O."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from penstock.errors import ConfigurationError
from penstock.events import fields_of
from penstock.sourcing.append import check_category
from penstock.sourcing.domain import Command, DomainEvent, Refusal
from penstock.sourcing.event_types import EventTypes, Part
from penstock.sourcing.fingerprint import fingerprint
from penstock.sourcing.snapshots import Snapshots

S = TypeVar("S")
Decision = DomainEvent | Sequence[DomainEvent] | Refusal
"""What becomes of a command: an event, several, none (an empty list), or a refusal with its reason."""


@dataclass(frozen=True)
class Aggregate(Generic[S]):
    """A kind of thing with a history: what its streams may hold, and what follows from it.

    `decide` takes the state and a command and returns an event, several, () where there is nothing to do, or
    a Refusal. `evolve` takes the state and an event and returns the new state. Both are pure: no clock, no
    database, no randomness. `initial` is the state before the first event, a frozen dataclass. `snapshots`
    says when the state is kept, so that a long history need not be read again.
    """

    category: str
    initial: S
    decide: Callable[[S, Any], Decision]
    evolve: Callable[[S, Any], S]
    events: tuple[type[DomainEvent], ...]
    split: Mapping[str, Sequence[Part]] = field(default_factory=dict, hash=False)
    removed: tuple[str, ...] = ()
    snapshots: Snapshots = field(default_factory=Snapshots)

    def __post_init__(self) -> None:
        check_category(self.category)
        fields_of(type(self.initial))  # a state that can't be kept is refused here
        keeps = self.snapshots.every is not None or self.snapshots.age is not None
        if self.types.have_other_subjects and keeps:
            raise ConfigurationError(
                f"events of {self.category!r} are about others than their streams, and snapshots would be",
                hint="give it snapshots=Snapshots(every=None): a state of several subjects can't be erased",
            )

    @cached_property
    def types(self) -> EventTypes:
        return EventTypes(tuple(self.events), self.split, tuple(self.removed))

    @cached_property
    def tag(self) -> str:
        """What a snapshot of its state is good for: the state's shape and the code that makes it."""
        state = (type(self.initial), self.initial)
        return fingerprint(self.evolve, state, self.events, dict(self.split), self.removed)

    def fold(self, events: Iterable[DomainEvent], state: S | None = None) -> S:
        """Return the state after events."""
        found = self.initial if state is None else state
        for event in events:
            found = self.evolve(found, event)
            if found is None:
                raise ConfigurationError(
                    f"evolve of {self.category!r} returned None for a {type(event).__name__}",
                    hint="return the state for every event, changed or not",
                )
        return found

    def decided(self, state: S, command: Command) -> tuple[DomainEvent, ...] | Refusal:
        """Return what a command leads to, as a tuple of events, or its refusal."""
        if not isinstance(command, Command):
            raise ConfigurationError(
                f"{command!r:.100} is not a command", hint="make one of a class that is a Command"
            )
        decision = self.decide(state, command)
        match decision:
            case Refusal():
                return decision
            case None:
                raise ConfigurationError(
                    f"decide of {self.category!r} returned None for {type(command).__name__}",
                    hint="is a case missing? return () where there is nothing to do",
                )
            case DomainEvent():
                return (decision,)
        events = tuple(decision)
        stranger = next((each for each in events if not isinstance(each, DomainEvent)), None)
        if stranger is not None:
            raise ConfigurationError(
                f"deciding {type(command).__name__} returned a {type(stranger).__name__}",
                hint="return events, or one Refusal",
            )
        return events
