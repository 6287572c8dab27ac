"""Searches a topic: from a place on, or from its ends backwards, within a bound on what is read."""

import heapq
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from penstock.documents import JsonObject
from penstock.gateway.refusal import Refusal
from penstock.gateway.start import Start, spelled, whole
from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.settings import Settings

USUAL, MOST = 50, 500  # events that are returned
_SCANNED, _SECONDS = 100_000, 4.0  # records and time that one request may cost
_GROWTH = 4  # of a window to the next one before it
LATEST = "latest"
Decode = Callable[[Received], JsonObject]


@dataclass(frozen=True)
class Search:
    """What is looked for, and from where on; `text` stands in the event as it is shown, `key` is whole."""

    topic: str
    start: Start | None = None  # None: the last ones
    key: str | None = None
    text: str | None = None
    limit: int = USUAL

    @classmethod
    def of(cls, topic: str, asked: Mapping[str, str]) -> Self:
        """Return the search that a query asks for."""
        limit = max(1, whole("limit", asked.get("limit", str(USUAL)), MOST))
        is_latest = asked.get("from", LATEST) == LATEST and "offset" not in asked
        start = None if is_latest else Start.of(asked)
        return cls(topic, start, asked.get("key") or None, asked.get("text") or None, limit)


@dataclass
class Found:
    """What a search has found so far: events, how many records were read, and where to go on.

    One that goes backwards is `incomplete` if it ended before it had come to what is looked for.
    """

    events: list[JsonObject] = field(default_factory=list)
    scanned: int = 0
    following: str | None = None
    incomplete: bool = False

    @property
    def document(self) -> JsonObject:
        return {
            "events": self.events,
            "scanned": self.scanned,
            "next": self.following,
            "incomplete": self.incomplete,
        }


class _Newest:
    """The newest of the events that are added, and how many were added of each partition."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[int, int, int, int, JsonObject]] = []
        self.counts: Counter[int] = Counter()

    def add(self, message: Received, shown: JsonObject) -> None:
        place = message.timestamp()[1], message.partition(), message.offset()
        heapq.heappush(self._heap, (*place, self.counts.total(), shown))
        self.counts[message.partition()] += 1
        if len(self._heap) > self._limit:
            heapq.heappop(self._heap)

    @property
    def events(self) -> list[JsonObject]:
        return [shown for *_, shown in sorted(self._heap, reverse=True)]


def search(asked: Search, settings: Settings, decode: Decode) -> Found:
    """Read a topic's committed records, and return those that are looked for."""
    group = {"fetch.wait.max.ms": 50}
    with Cursor(asked.topic, settings, kafka=group, archived=asked.start is not None) as cursor:
        if asked.start is None:
            return _latest(asked, cursor, decode)
        ends = cursor.ends()
        begins = _begins(asked.start, cursor, ends)
        cursor.go_to(begins)
        return _scanned(asked, cursor, {each: ends[each] for each in begins}, decode)


def _latest(asked: Search, cursor: Cursor, decode: Decode) -> Found:
    """Read windows from the ends backwards: what a search has no time for is what is oldest.

    A partition is done with once it has as many matches as are wanted.
    """
    first, tops = cursor.beginnings(), cursor.ends()
    newest, found, deadline = _Newest(asked.limit), Found(), time.monotonic() + _SECONDS
    size = asked.limit
    while (begins := _windows(first, tops, newest.counts, asked.limit, size)) and found.scanned < _SCANNED:
        cursor.go_to(begins)
        for message in _read(cursor, tops, deadline):
            found.scanned += 1
            shown = _matching(asked, message, decode)
            if shown is not None:
                newest.add(message, shown)
        if _lacks(cursor, tops):
            break
        tops |= begins
        size = max(1, min(_GROWTH * size, (_SCANNED - found.scanned) // len(begins)))
    found.events, found.incomplete = newest.events, bool(begins)
    return found


def _windows(
    first: Mapping[int, int], tops: Mapping[int, int], counts: Counter[int], limit: int, size: int
) -> dict[int, int]:
    """Where the next window of each partition begins that is neither read nor done with."""
    return {
        each: max(first[each], top - size)
        for each, top in tops.items()
        if top > first[each] and counts[each] < limit
    }


def _read(cursor: Cursor, ends: Mapping[int, int], deadline: float) -> Iterator[Received]:
    """Read partitions to their ends, or until the time is up."""
    while _lacks(cursor, ends) and time.monotonic() < deadline:
        for message in cursor.read(500, wait=0.2):
            if message.offset() < ends[message.partition()]:
                yield message


def _lacks(cursor: Cursor, ends: Mapping[int, int]) -> bool:
    return any(at < ends[each] for each, at in cursor.position.items())


def _begins(start: Start, cursor: Cursor, ends: Mapping[int, int]) -> dict[int, int]:
    first = cursor.beginnings()
    found = cursor.resolved(start.position) if start.position is not None else dict(start.offsets or {})
    if start.partition is not None:
        found = {each: offset for each, offset in found.items() if each == start.partition}
    unknown = sorted(set(found) - set(ends))
    if unknown or not found:
        partition = start.partition if start.partition is not None else (unknown or [0])[0]
        raise Refusal(
            404,
            "console.partition",
            f"there is no partition {partition}",
            hint=f"there are 0 to {len(ends) - 1}",
        )
    return {each: min(max(first[each], offset), ends[each]) for each, offset in found.items()}


def _scanned(asked: Search, cursor: Cursor, ends: Mapping[int, int], decode: Decode) -> Found:
    """Read until there are enough, all is read, or it costs too much: then it is said where to go on."""
    found, deadline = Found(), time.monotonic() + _SECONDS
    at = dict(cursor.position)
    while any(at[each] < end for each, end in ends.items()):
        for message in cursor.read(500, wait=0.2):
            number = message.partition()
            if message.offset() >= ends[number]:
                continue
            found.scanned += 1
            at[number] = message.offset() + 1
            shown = _matching(asked, message, decode)
            if shown is not None:
                found.events.append(shown)
            if len(found.events) >= asked.limit:
                break
        else:
            at = {each: max(at[each], cursor.position[each]) for each in at}
        if len(found.events) >= asked.limit or found.scanned >= _SCANNED or time.monotonic() > deadline:
            break
    if any(at[each] < end for each, end in ends.items()):
        found.following = spelled(at)
    return found


def _matching(asked: Search, message: Received, decode: Decode) -> JsonObject | None:
    """The document of a message that is looked for; a text is looked for in what is shown, never run."""
    if asked.key is not None and (message.key() or b"") != asked.key.encode():
        return None
    shown = decode(message)
    if asked.text is None:
        return shown
    text = json.dumps({name: shown.get(name) for name in ("event", "value", "headers")}, ensure_ascii=False)
    return shown if asked.text.lower() in text.lower() else None
