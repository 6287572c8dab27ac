"""Leases: an event that a worker holds for a while, and must decide about."""

import time
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from penstock.errors import LeaseError
from penstock.events import Event
from penstock.log.message import Delivered
from penstock.log.records import Placed

E = TypeVar("E", bound=Event)
Decision = Literal["acknowledged", "released", "rejected"]
State = Literal["held", "acknowledged", "released", "rejected", "lost"]


class Lease(Placed, Generic[E]):
    """An event on loan from a queue: acknowledge, release or reject it before the lease is over.

    `deliveries` counts how often the queue has handed it out, this time included. `state` is "held" until
    it was decided on; "lost" if the broker had taken it back before.
    """

    __slots__ = ("_decide", "_until", "event", "state")
    _message: Delivered

    def __init__(
        self, event: E, message: Delivered, until: float, decide: "Callable[[Lease[E], Decision, str], State]"
    ) -> None:
        super().__init__(message)
        self.event = event
        self.state: State = "held"
        self._until = until
        self._decide = decide

    @property
    def message(self) -> Delivered:
        """The confluent-kafka message underneath."""
        return self._message

    @property
    def place(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"

    @property
    def deliveries(self) -> int:
        return int(self._message.delivery_count() or 1)

    @property
    def over(self) -> bool:
        """Whether the lease is over by this machine's clock; the broker's word is what counts."""
        return time.monotonic() > self._until

    def acknowledge(self) -> None:
        """Say that the work is done; LeaseError if the event is no longer this worker's."""
        self._settle("acknowledged", "")

    def release(self, reason: str = "it was released") -> None:
        """Give the event back now; at the delivery limit it goes to the dead letters instead."""
        if self.state != "lost":
            self._settle("released", reason)

    def reject(self, reason: str) -> None:
        """Send the event to the dead letters with the reason; nobody is given it again."""
        self._settle("rejected", reason)

    def __repr__(self) -> str:
        return f"Lease({self.place}, delivery {self.deliveries}, {self.state}, {self.event!r})"

    def _settle(self, decision: Decision, reason: str) -> None:
        if self.state != "held":
            raise LeaseError(
                f"{self.place} can't be {decision}: it is {self.state} already", hint="decide once"
            )
        self.state = "lost"  # until the broker has confirmed otherwise
        self.state = self._decide(self, decision, reason)
