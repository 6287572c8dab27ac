"""The answer to why: a result, what made it, and the events behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from penstock.process.wire.messages import MADE_BY

_FIRST = "1"  # a flow's version, unless it is said


@dataclass(frozen=True, order=True)
class Place:
    """Where an event stands in the log.

    >>> str(Place.parsed("shop.payments/1/17"))
    'shop.payments/1/17'
    """

    topic: str
    partition: int
    offset: int

    @classmethod
    def parsed(cls, text: str) -> Self | None:
        """Return the place that a text names, if it names one."""
        parts = text.rsplit("/", 2)
        if len(parts) < 3 or not (parts[1].isdigit() and parts[2].isdigit()):
            return None
        return cls(parts[0], int(parts[1]), int(parts[2]))

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True)
class Made:
    """What a result says of how it came to be: the flow, its version, and the event that made it.

    >>> Made.parsed("watch.large@2 shop.payments/1/17")
    Made(flow='watch.large', version='2', source=Place(topic='shop.payments', partition=1, offset=17))
    """

    flow: str
    version: str = _FIRST
    source: Place | None = None

    @classmethod
    def parsed(cls, text: str) -> Self:
        maker, _, source = text.partition(" ")
        flow, at, version = maker.partition("@")
        return cls(flow, version if at else _FIRST, Place.parsed(source))

    @classmethod
    def of_headers(cls, headers: list[Mapping[str, Any]] | None) -> Self | None:
        """Return what the last header of ours says; None if no flow wrote the event."""
        found = [each["value"] for each in headers or () if each["key"] == MADE_BY and each["value"]]
        return cls.parsed(bytes(found[-1]).decode("utf-8", "replace")) if found else None


@dataclass(frozen=True)
class BehindEvent:
    """An event that a result came of: the flow's argument, where and when it stands, and what it holds."""

    argument: str
    place: Place
    written: datetime
    values: Mapping[str, Any]
    made: Made | None = None


@dataclass(frozen=True)
class Answer:
    """What a result came of.

    `proved` says that the flow's function makes the result of just these events. Without a proof, it may make
    one that is the same but for some columns: `but_for`, which are what `instead` says. They depend on how
    batches were cut, or on events that the log no longer has. `minimal` says that none of the events can be
    left out. Where too much differs, the events are those of the same key, as far as there are a few.
    """

    target: str
    result: Mapping[str, Any]
    place: Place | None
    made: Made
    events: tuple[BehindEvent, ...]
    proved: bool
    minimal: bool
    but_for: tuple[str, ...]
    compared: tuple[str, ...]  # columns that are the same
    looked_at: str  # how events were looked for
    candidates: int
    runs: int
    instead: Mapping[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The answer in a sentence."""
        amount = f"{len(self.events):,} event{'' if len(self.events) == 1 else 's'}"
        less = "none can be left out" if self.minimal else "some may not be needed"
        if self.proved:
            return f"{amount}: recomputed from just these, the result is the same; {less}"
        if not self.but_for:
            return f"not proved: {amount} of {self.looked_at} do not give this result when it is recomputed"
        return (
            f"not proved: {amount}; recomputed from just these, the result is the same but for "
            f"{', '.join(self.but_for)}: how batches were cut, or events that the log no longer has, may be "
            f"the reason; {less}"
        )
