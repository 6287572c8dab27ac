"""Tests of aggregates: given events, when a command comes, then events follow, or a refusal."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from penstock.schemas.shape import shape_of
from penstock.sourcing import Aggregate, Command, DomainEvent, Recorded, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

S = TypeVar("S")


def given(aggregate: Aggregate[S], *events: DomainEvent) -> "Given[S]":
    """Begin a test with what has happened.

    >>> from penstock.apps.bank.account import account, Opened, Withdraw, InsufficientFunds
    >>> from decimal import Decimal
    >>> test = given(account, Opened("Ada")).when(Withdraw(Decimal(5)))
    >>> test.then_refused(InsufficientFunds(Decimal(0), Decimal(5)))
    """
    return Given(aggregate, events)


@dataclass(frozen=True)
class Given(Generic[S]):
    """What has happened in a stream."""

    aggregate: Aggregate[S]
    events: tuple[DomainEvent, ...]

    @property
    def state(self) -> S:
        return self.aggregate.fold(self.events)

    def when(self, command: Command) -> "Then":
        """Decide about a command; the same state and command have to lead to the same."""
        decided = self.aggregate.decided(self.state, command)
        again = self.aggregate.decided(self.state, command)
        if decided != again:
            raise AssertionError(f"decide is not pure: {command} led to {decided}, and then to {again}")
        return Then(command, decided)


@dataclass(frozen=True)
class Then:
    """What a command led to."""

    command: Command
    decided: tuple[DomainEvent, ...] | Refusal

    def then(self, *events: DomainEvent) -> None:
        """Check that these events follow, and no others."""
        if self.decided != events:
            raise AssertionError(f"{self.command} led to {self.decided}, expected {events}")

    def then_refused(self, refusal: Refusal | type[Refusal]) -> None:
        """Check that it is refused, with this reason or one of this class."""
        fits = isinstance(self.decided, refusal) if isinstance(refusal, type) else self.decided == refusal
        if not fits:
            raise AssertionError(f"{self.command} led to {self.decided}, expected the refusal {refusal}")


def check_aggregate(
    aggregate: Aggregate[S],
    commands: "SearchStrategy[Command]",
    invariant: "Callable[[S], bool]" = lambda _: True,
    *,
    longest: int = 40,
    examples: int = 100,
) -> None:
    """Check an aggregate over random histories, with hypothesis.

    `commands` is a strategy. After each command that was accepted: deciding and evolving again gives the
    same, events and state come back from JSON as they were, and `invariant` holds of the state.
    """
    from hypothesis import given as given_random
    from hypothesis import settings
    from hypothesis.strategies import lists

    @settings(max_examples=examples, deadline=None)
    @given_random(lists(commands, max_size=longest))
    def holds(history: list[Command]) -> None:
        _check_history(aggregate, history, invariant)

    holds()


def _check_history(
    aggregate: Aggregate[S], commands: list[Command], invariant: "Callable[[S], bool]"
) -> None:
    events: tuple[DomainEvent, ...] = ()
    state = aggregate.initial
    for command in commands:
        decided = given(aggregate, *events).when(command).decided
        if isinstance(decided, Refusal):
            continue
        for event in decided:
            _expect(_through_json(aggregate, event) == event, f"{event} does not come back from JSON")
        state = aggregate.fold(decided, state)
        events += decided
        _expect(aggregate.fold(events) == state, f"evolve is not pure: {events} led to {state} once")
        _expect(_state_through_json(state) == state, f"the state {state} does not come back from JSON")
        _expect(invariant(state), f"the invariant does not hold of {state} after {events}")


def _through_json(aggregate: Aggregate[Any], event: DomainEvent) -> DomainEvent:
    from datetime import UTC, datetime

    record = Recorded(
        category=aggregate.category,
        stream="test",
        version=1,
        type=event.event_type,
        schema_version=event.schema_version,
        at=datetime.now(UTC),
        data=aggregate.types.data_of(event),
    )
    return aggregate.types.events_of(record)[0]


def _state_through_json(state: Any) -> Any:
    shape = shape_of(type(state))
    return shape.revive(msgspec.json.decode(msgspec.json.encode(state), type=shape.lenient))


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
