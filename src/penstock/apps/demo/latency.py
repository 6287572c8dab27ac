"""How long results took, for a report."""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime

from penstock.apps.demo.report import Figures
from penstock.cli.output import milliseconds


def percentile(seconds: Sequence[float], share: float) -> float | None:
    """The milliseconds within which a share came; None if there are none."""
    ordered = sorted(seconds)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def latency_figures(seconds: Sequence[float], what: str) -> Figures:
    """The median, the 99th percentile and the longest."""
    p50, p99, longest = (milliseconds(percentile(seconds, share)) for share in (0.5, 0.99, 1.0))
    return [("p50", p50, what), ("p99", p99, f"of the same {len(seconds):,}; the longest {longest}")]


class Pace:
    """When traffic reached which event time; in a demo that may pass faster than the clock's."""

    def __init__(self) -> None:
        self._times: list[datetime] = []
        self._moments: list[float] = []

    def note(self, at: datetime, moment: float) -> None:
        """Note an event time that was sent at a moment; only what is ahead of all others counts."""
        if not self._times or at > self._times[-1]:
            self._times.append(at)
            self._moments.append(moment)

    def reached(self, at: datetime) -> float | None:
        """The moment at which traffic reached a time, if it did."""
        place = bisect_left(self._times, at)
        return self._moments[place] if place < len(self._times) else None
