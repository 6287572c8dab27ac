"""Latencies of live events: percentiles by the second, alone and while another reader replays."""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.documents import JsonObject

_SECONDS, _KEPT = 60, 5_000


@dataclass
class Latencies:
    """What was measured, in milliseconds.

    >>> found = Latencies()
    >>> found.add(1.0, [2.0, 4.0], is_replayed=False)
    >>> found.figures()["p50_alone"], found.figures()["p50_replay"]
    (2.0, None)
    """

    _alone: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _replay: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _seconds: deque[tuple[int, bool, list[float]]] = field(default_factory=lambda: deque(maxlen=_SECONDS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, at: float, found: Sequence[float], *, is_replayed: bool) -> None:
        """Add what was measured at a moment."""
        with self._lock:
            (self._replay if is_replayed else self._alone).extend(found)
            if not self._seconds or self._seconds[-1][0] != int(at):
                self._seconds.append((int(at), is_replayed, []))
            self._seconds[-1][2].extend(found)

    def figures(self) -> JsonObject:
        """Percentiles alone and during replays, and those of each second."""
        with self._lock:
            alone, replay, seconds = list(self._alone), list(self._replay), list(self._seconds)
        return {
            "p50_alone": percentile(alone, 50),
            "p99_alone": percentile(alone, 99),
            "p50_replay": percentile(replay, 50),
            "p99_replay": percentile(replay, 99),
            "trend": [[at, percentile(each, 50), percentile(each, 99), is_it] for at, is_it, each in seconds],
        }


def percentile(found: Sequence[float], share: int) -> float | None:
    """Return the value that so many percent do not exceed, None of nothing.

    >>> percentile([5.0, 1.0, 3.0], 50)
    3.0
    """
    ordered = sorted(found)
    return round(ordered[max(0, -(-len(ordered) * share // 100) - 1)], 1) if ordered else None
