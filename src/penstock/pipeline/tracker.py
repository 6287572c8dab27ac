"""The watermark of a flow, kept from the highest event time of each writer. No Spark, no broker, no clock.

A writer is a partition of a topic; of rows that a flow has written, it is also what they were made of: a
partition of a topic that the flow reads, or where it has none the lane of its sink. Each writes in order.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from penstock.documents import JsonObject
from penstock.identity import LABEL
from penstock.process.time.watermark import TimeLine

Maxima = Mapping[TimeLine, Mapping[str, int]]  # the highest time of each writer, in microseconds
Named = tuple[str, str]  # a source, and a writer's name there
MOST = 8_000  # writers in all; those that come later count as their partition alone
QUIET = 60.0  # seconds after which a writer is not waited for, if nothing else is said
_LANE = "lane"
_MADE = re.compile(rf"({LABEL})(?: ([\w.-]{{1,249}})/(\d{{1,9}}))?", re.ASCII)
_ANY = -(2**63)  # the bound of a writer of which nothing is known


@dataclass(frozen=True)
class Writer:
    """Who wrote a row: `3`, `3 shop.bill sales/0` or `3 shop.counts lane/1`.

    >>> Writer.parse("3 shop.bill sales/0")
    Writer(partition=3, flow='shop.bill', origin='sales', number=0)
    """

    partition: int
    flow: str | None = None
    origin: str | None = None
    number: int = 0

    @classmethod
    def parse(cls, text: str) -> "Writer":
        """Read a writer's name; one that says something unheard of is no more than its partition."""
        partition, _, made = text.partition(" ")
        found = _MADE.fullmatch(made)
        if found is None:
            return cls(int(partition))
        flow, origin, number = found.groups()
        return cls(int(partition), flow, origin, int(number or 0))

    @property
    def in_lane(self) -> bool:
        """Whether its rows have no event that they were made of."""
        return self.origin == _LANE or self.origin is None


@dataclass(frozen=True)
class Demand:
    """A watermark over a time line: so far behind it, and when a quiet writer is left out."""

    line: TimeLine
    delay: int  # microseconds
    idle: float = QUIET  # seconds


@dataclass
class WatermarkTracker:
    """Learns the highest times of writers, and says how far the watermark may go; it never goes back.

    `now` is in seconds, of any clock that runs evenly.
    """

    demands: tuple[Demand, ...] = ()
    maxima: dict[TimeLine, dict[str, int]] = field(default_factory=dict)
    reached: int | None = None
    first: float | None = None  # when an event came
    last: float | None = None
    _heard: dict[tuple[str, str], float] = field(default_factory=dict)
    folded: bool = False  # whether there were more writers than can be kept
    _allowed: Mapping[Named, int] = field(default_factory=dict)
    _unread: dict[str, set[int]] = field(default_factory=dict)  # partitions of sources
    _at_end: dict[tuple[str, int], dict[TimeLine, dict[str, int]]] = field(default_factory=dict)

    def learn(self, maxima: Maxima, now: float) -> None:
        """Take in the highest times of a batch."""
        for line, writers in maxima.items():
            known = self.maxima.setdefault(line, {})
            for name, time in writers.items():
                writer = name if name in known or self._has_room() else name.partition(" ")[0]
                self.folded |= writer != name
                known[writer] = max(time, known.get(writer, time))
                self._heard[line.source, writer] = self.last = now
                self.first = now if self.first is None else self.first

    def read(self, source: str, unread: Iterable[int], read: Iterable[int]) -> None:
        """Hear which partitions of a source have more than was read, and which were read to their end.

        What comes of an origin after that is later than what was heard of it anywhere before.
        """
        self._unread[source] = set(unread)
        lines = [line for line in self.maxima if line.source == source]
        for partition in {*read} - self._unread[source]:
            self._at_end[source, partition] = {line: self._origins(line) for line in lines}

    def resume(self, now: float) -> None:
        """Count every writer as heard of: nobody knows what came while nobody listened."""
        self._heard = dict.fromkeys(self.writers(), now)
        self.first = self.last = now if self.maxima else None

    def writers(self, source: str | None = None) -> set[tuple[str, str]]:
        """Return all writers, or those of a source."""
        return {
            (line.source, writer)
            for line, writers in self.maxima.items()
            if source in (None, line.source)
            for writer in writers
        }

    def quiet(self) -> set[Named]:
        """Return the writers of which nothing was heard for long, while others went on."""
        return {
            (demand.line.source, writer)
            for demand in self.demands
            for writer in self.maxima.get(demand.line, {})
            if self._is_quiet(demand, writer)
        }

    def allow(self, allowed: Mapping[Named, int]) -> None:
        """Let the watermark go so far without quiet writers; those that are not named are waited for."""
        self._allowed = allowed

    def without_quiet(self, now: float) -> int | None:
        """Return how far the watermark could go without quiet writers; None if that is not known."""
        bounds = [time for demand in self.demands for time in self._bounds(demand, now, waits=False)]
        return None if not bounds or _ANY in bounds else min(bounds)

    def _has_room(self) -> bool:
        return sum(map(len, self.maxima.values())) < MOST

    def advance(self, now: float) -> int | None:
        """Return the watermark: behind each time line's writer that is furthest back, the least of all.

        A source of which nothing was heard, such as one side of a join, is waited for until it is quiet.
        """
        candidates = [time for demand in self.demands for time in self._bounds(demand, now, waits=True)]
        if candidates and _ANY not in candidates:
            self.reached = max(min(candidates), self.reached if self.reached is not None else min(candidates))
        return self.reached

    def follow(self, time: int) -> int:
        """Move the watermark to a time that no event says."""
        self.reached = time if self.reached is None else max(time, self.reached)
        return self.reached

    def _bounds(self, demand: Demand, now: float, *, waits: bool) -> Iterator[int]:
        """Yield what each writer allows: no event of it to come is older, unless it is late."""
        if not self.maxima.get(demand.line) and self.first is not None and now - self.first < demand.idle:
            yield _ANY
        for writer, time in self.maxima.get(demand.line, {}).items():
            if not self._is_quiet(demand, writer):
                yield time - demand.delay
            elif waits:
                yield max(time - demand.delay, self._allowed.get((demand.line.source, writer), _ANY))
        for time in self._hidden(demand.line):
            yield time if time == _ANY else time - demand.delay

    def _hidden(self, line: TimeLine) -> Iterator[int]:
        """Yield bounds for writers that may stand in what is unread, and have not been heard of there."""
        known, origins = self.maxima.get(line, {}), self._origins(line)
        heard = {Writer.parse(writer).partition for writer in known}
        for partition in self._unread.get(line.source, ()):
            before = self._at_end.get((line.source, partition), {}).get(line, {})
            if partition not in heard:
                yield _ANY
            unheard = [] if self.folded else [each for each in origins if f"{partition} {each}" not in known]
            yield from (before.get(origin, _ANY) for origin in unheard)

    def _origins(self, line: TimeLine) -> dict[str, int]:
        """The highest time of each origin, whichever partition it was written to."""
        found: dict[str, int] = {}
        for writer, time in self.maxima.get(line, {}).items():
            _, _, origin = writer.partition(" ")
            if origin:
                found[origin] = max(time, found.get(origin, time))
        return found

    def _is_quiet(self, demand: Demand, writer: str) -> bool:
        """Whether others went on for so long after its last event."""
        heard = self._heard.get((demand.line.source, writer))
        return heard is not None and self.last is not None and self.last - heard >= demand.idle

    def to_dict(self) -> JsonObject:
        """Return what is to be kept of it."""
        lines = [[*vars(line).values(), writers] for line, writers in self.maxima.items()]
        return {"reached": self.reached, "maxima": lines}

    def restore(self, kept: JsonObject) -> None:
        """Take over what was kept."""
        self.reached = kept["reached"]
        self.maxima = {TimeLine(*line): dict(writers) for *line, writers in kept["maxima"]}
