"""The tally: what was sent, what each window has counted, and the difference."""

import threading
from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from penstock.documents import JsonObject

Key = tuple[str, int]  # a user, and a start in microseconds or, in sliding windows, the number of a view


@dataclass(frozen=True, order=True)
class Window:
    """The last result of a window; times in microseconds since the beginning."""

    end: int
    user: str
    start: int
    kind: str
    rows: int


@dataclass
class Tally:
    """Compares the last result of each window with the views that were sent. Thread-safe.

    >>> tally = Tally(is_sliding=False)
    >>> for at in (1, 2, 12):
    ...     tally.send("ann", at)
    >>> tally.emit(("ann", 0), Window(10, "ann", 0, "on time", 1))
    >>> tally.totals()["truth"], tally.totals()["counted"], tally.totals()["missing"]
    (2, 1, 1)
    """

    is_sliding: bool
    sent: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    windows: dict[Key, Window] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, user: str, at: int) -> None:
        """A view was sent."""
        with self._lock:
            insort(self.sent[user], at)

    def emit(self, key: Key, window: Window) -> None:
        """A result came: it replaces the one before it, or takes it back."""
        with self._lock:
            self.kinds[window.kind] += 1
            if window.kind == "retracted":
                self.windows.pop(key, None)
            else:
                self.windows[key] = window

    def truth(self, window: Window) -> int:
        """How many views were sent that belong to a window."""
        with self._lock:
            return self._truth(window)

    def _truth(self, window: Window) -> int:
        times = self.sent.get(window.user, [])
        if self.is_sliding:  # which ends with its view, and leaves out its start
            return bisect_right(times, window.end) - bisect_right(times, window.start)
        return bisect_left(times, window.end) - bisect_left(times, window.start)

    def totals(self) -> JsonObject:
        """Sums over all windows that have a result."""
        with self._lock:
            return self._totals()

    def _totals(self) -> JsonObject:
        truth = sum(self._truth(each) for each in self.windows.values())
        counted = sum(each.rows for each in self.windows.values())
        return {
            "sent": sum(len(each) for each in self.sent.values()),
            "closed": len(self.windows),
            "truth": truth,
            "counted": counted,
            "missing": truth - counted,
            "corrected": self.kinds["corrected"] + self.kinds["late"] * (not self.is_sliding),
            "retracted": self.kinds["retracted"],
        }

    def recent(self, since: int, most: int) -> list[list[object]]:
        """The last windows that end after a moment, each with its truth; times in seconds."""
        with self._lock:
            found = sorted(each for each in self.windows.values() if each.end >= since)
            return [
                [each.user, each.start / 1e6, each.end / 1e6, each.rows, self._truth(each), each.kind]
                for each in found[-most:]
            ]
