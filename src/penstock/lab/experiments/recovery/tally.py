"""What came out of a flow beside what went in: exact, doubled, lost, or not due yet."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.documents import JsonObject


@dataclass
class Tally:
    """Counts what stands in the log, what stands in the results, and how far the flow has committed.

    An event that the flow has passed without a result is lost: no flow goes back behind its checkpoint.

    >>> tally = Tally()
    >>> tally.add_sent([(0, 0, 1), (0, 1, 2), (0, 2, 3)])
    >>> tally.add_results([1, 1])
    >>> tally.settle({0: 2})
    >>> tally.figures()
    {'exact': 0, 'doubled': 1, 'lost': 1, 'waiting': 1, 'copies': 1}
    """

    seen: Counter[int] = field(default_factory=Counter)
    _logs: dict[int, dict[int, int]] = field(default_factory=dict)  # partition: offset: number
    _settled: dict[int, int] = field(default_factory=dict)
    _missing: set[int] = field(default_factory=set)
    _results: int = 0
    _doubled: int = 0
    _sent: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_sent(self, places: Iterable[tuple[int, int, int]]) -> None:
        """Note events by partition, offset and number."""
        with self._lock:
            for partition, offset, number in places:
                self._logs.setdefault(partition, {})[offset] = number
                self._sent.add(number)

    def add_results(self, numbers: Iterable[int]) -> None:
        """Note the numbers of results."""
        with self._lock:
            for number in numbers:
                self.seen[number] += 1
                self._results += 1
                self._doubled += self.seen[number] == 2

    def settle(self, position: Mapping[int, int]) -> None:
        """Look for what the flow has passed; all results of before it was here have been noted."""
        with self._lock:
            for partition, end in position.items():
                self._settle(partition, end)
            self._missing = {number for number in self._missing if not self.seen[number]}

    def _settle(self, partition: int, end: int) -> None:
        log, offset = self._logs.get(partition, {}), self._settled.get(partition, 0)
        while offset < end and offset in log:  # what is not read yet is settled the next time
            if not self.seen[log[offset]]:
                self._missing.add(log[offset])
            offset += 1
        self._settled[partition] = offset

    def is_lost(self, number: int) -> bool:
        """Whether the flow has passed an event without a result."""
        return number in self._missing

    def number_at(self, position: Mapping[int, int]) -> int:
        """The number of the first event behind a position: up to it, all have been read."""
        with self._lock:
            behind = [self._logs.get(each, {}).get(at) for each, at in position.items()]
            numbers = [each for each in behind if each is not None]
            return min(numbers, default=len(self._sent)) if position else 0

    def figures(self) -> JsonObject:
        """Count; `copies` are the results beyond the first of their events."""
        with self._lock:
            found, doubled, lost = len(self.seen), self._doubled, len(self._missing)
            results, sent = self._results, len(self._sent)
        return {
            "exact": found - doubled,
            "doubled": doubled,
            "lost": lost,
            "waiting": max(0, sent - found - lost),
            "copies": results - found,
        }
