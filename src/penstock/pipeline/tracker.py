"""The watermark of a flow, kept from the highest event time of each writer. No Spark, no broker, no clock.

A writer is a partition of a topic; of rows that a flow has written, it is also what they were made of: a
partition of a topic that the flow reads, or where it has none the lane of its sink. Each writes in order.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.process.windows.watermark import TimeLine

Maxima = Mapping[TimeLine, Mapping[str, int]]  # the highest time of each writer, in microseconds
QUIET = 60.0  # seconds after which a writer is not waited for, if nothing else is said
_LANE = "lane"
_MADE = re.compile(r"([\w.-]{1,200})(?: ([\w.-]{1,249})/(\d{1,9}))?", re.ASCII)
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
    _unread: dict[str, set[int]] = field(default_factory=dict)  # partitions of sources
    _at_end: dict[tuple[str, int], dict[TimeLine, dict[str, int]]] = field(default_factory=dict)

    def learn(self, maxima: Maxima, now: float) -> None:
        """Take in the highest times of a batch."""
        for line, writers in maxima.items():
            known = self.maxima.setdefault(line, {})
            for writer, time in writers.items():
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

    def quiet(self) -> set[tuple[str, str]]:
        """Return the writers that are not waited for, unless there is something unread of theirs."""
        return {
            (demand.line.source, writer)
            for demand in self.demands
            for writer in self.maxima.get(demand.line, {})
            if self._is_quiet(demand, writer)
        }

    def wait_for(self, writers: Iterable[tuple[str, str]], now: float) -> None:
        """Take writers for awake, although nothing has come of them."""
        self._heard |= dict.fromkeys(writers, now)

    def advance(self, now: float) -> int | None:
        """Return the watermark: behind each time line's writer that is furthest back, the least of all.

        A source of which nothing was heard, such as one side of a join, is waited for until it is quiet.
        """
        candidates = [time for demand in self.demands for time in self._bounds(demand, now)]
        if candidates and _ANY not in candidates:
            self.reached = max(min(candidates), self.reached if self.reached is not None else min(candidates))
        return self.reached

    def follow(self, time: int) -> int:
        """Move the watermark to a time that no event says."""
        self.reached = time if self.reached is None else max(time, self.reached)
        return self.reached

    def _bounds(self, demand: Demand, now: float) -> Iterator[int]:
        """Yield what each writer allows: no event of it to come is older, unless it is late."""
        if not self.maxima.get(demand.line) and self.first is not None and now - self.first < demand.idle:
            yield _ANY
        for writer, time in self.maxima.get(demand.line, {}).items():
            if not self._is_quiet(demand, writer):
                yield time - demand.delay
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
            yield from (
                before.get(origin, _ANY) for origin in origins if f"{partition} {origin}" not in known
            )

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

    def to_dict(self) -> dict[str, Any]:
        """Return what is to be kept of it."""
        lines = [[*vars(line).values(), writers] for line, writers in self.maxima.items()]
        return {"reached": self.reached, "maxima": lines}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Take over what was kept."""
        self.reached = kept["reached"]
        self.maxima = {TimeLine(*line): dict(writers) for *line, writers in kept["maxima"]}
