"""Routing: events go to the queues whose patterns the words of their routing key match."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from penstock.errors import TopicError
from penstock.events import Event, fields_of
from penstock.log.topic import Topic, key_bytes

E = TypeVar("E", bound=Event)
Words = Sequence[str]
_ONE, _ANY = "*", "#"
_FIELD = re.compile(r"\{(\w+)\}")


class Sender(Protocol):
    """What sends an event to a topic: a Producer, or a Transaction."""

    def send(self, topic: Topic[E], event: E) -> object: ...


@dataclass(frozen=True)
class Binding(Generic[E]):
    """A queue's topic and the patterns of what it gets; of an event that several match, it gets one copy.

    >>> matches("orders.*.eu", ["orders", "new", "eu"]), matches("orders.#", ["orders"])
    (True, True)
    """

    topic: Topic[E]
    patterns: str | tuple[str, ...]

    def __post_init__(self) -> None:
        for pattern in self._all:
            odd = [
                word for word in pattern.split(".") if not word or (len(word) > 1 and {*word} & {_ONE, _ANY})
            ]
            if odd:
                raise TopicError(
                    f"the pattern {pattern!r} has the word {odd[0]!r}",
                    hint="write words with dots between them; * is one word, # any number of words",
                )

    def wants(self, words: Words) -> bool:
        """Whether a routing key matches any of the patterns."""
        return any(matches(pattern, words) for pattern in self._all)

    @property
    def _all(self) -> tuple[str, ...]:
        return (self.patterns,) if isinstance(self.patterns, str) else self.patterns


@dataclass(frozen=True)
class Router(Generic[E]):
    """Sends events to the queues that are bound to them.

        router = Router("orders.{kind}.{region}", (Binding(europe, "orders.*.eu"),), otherwise=rest)
        router.send(producer, order)

    `by` is the routing key: words with dots between them, a field of the event in brackets is one word
    whatever it holds; or a function of the event that returns such a text. An event that no pattern matches
    goes to `otherwise`: none gets lost.
    """

    by: str | Callable[[E], str]
    bindings: tuple[Binding[E], ...]
    otherwise: Topic[E]

    def __post_init__(self) -> None:
        topics = [*(each.topic for each in self.bindings), self.otherwise]
        if len({each.name for each in topics}) < len(topics):
            raise TopicError("two bindings are of one topic", hint="give one binding all its patterns")
        event = self.otherwise.event
        other = next((each for each in topics if each.event is not event), None)
        if other is not None:
            raise TopicError(
                f"topic {other.name!r} takes {other.event.__name__}, and {self.otherwise.name!r} "
                f"{event.__name__}",
                hint="a router's topics have one event class",
            )
        known = {each.name for each in fields_of(event)}
        unknown = (
            [name for name in _FIELD.findall(self.by) if name not in known]
            if isinstance(self.by, str)
            else []
        )
        if unknown:
            raise TopicError(f"the routing key names {unknown[0]!r}, which {event.__name__} has no field for")

    def topics(self, event: E) -> tuple[Topic[E], ...]:
        """Return the topics that an event goes to."""
        words = self._words(event)
        return tuple(each.topic for each in self.bindings if each.wants(words)) or (self.otherwise,)

    def send(self, sender: Sender, event: E) -> tuple[Topic[E], ...]:
        """Send an event to each of its topics, and return them."""
        found = self.topics(event)
        for topic in found:
            sender.send(topic, event)
        return found

    @cached_property
    def _words(self) -> Callable[[E], list[str]]:
        by = self.by
        if callable(by):
            return lambda event: by(event).split(".")
        parts = [_FIELD.split(word) for word in by.split(".")]
        return lambda event: ["".join(_filled(part, event)) for part in parts]


def matches(pattern: str, words: Words) -> bool:
    """Say whether words match a pattern; the time it takes is bounded by the product of their lengths."""
    wanted = pattern.split(".")
    reached = {0}  # how many words of the pattern may be behind us
    for word in words:
        reached = _beyond_any(wanted, reached)
        reached = {
            each + (wanted[each] != _ANY)
            for each in reached
            if each < len(wanted) and wanted[each] in (word, _ONE, _ANY)
        }
    return len(wanted) in _beyond_any(wanted, reached)


def _beyond_any(wanted: Words, reached: set[int]) -> set[int]:
    """A `#` may stand for no word at all."""
    found = set(reached)
    for each in range(len(wanted)):
        if each in found and wanted[each] == _ANY:
            found.add(each + 1)
    return found


def _filled(parts: Words, event: Event) -> list[str]:
    return [
        (key_bytes(getattr(event, part)) or b"").decode(errors="backslashreplace") if place % 2 else part
        for place, part in enumerate(parts)
    ]
