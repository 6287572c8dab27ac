"""The rankings that are due of posts, found plainly, by a pass over the panes of time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Ranking = list[tuple[str, int, float]]  # tags, the first one first, with their uses and growth


@dataclass(frozen=True)
class Rankings:
    """What `ranking.rising` is to give for its arguments."""

    count: int
    window: timedelta
    every: timedelta
    baseline: timedelta
    floor: float

    def of(self, posts: Iterable[tuple[str, datetime]]) -> dict[datetime, Ranking]:
        """Return the ranking of each window by its end."""
        panes: dict[int, Counter[str]] = defaultdict(Counter)
        for tag, at in posts:
            panes[(at - _EPOCH) // self.every][tag] += 1
        return dict(self._rankings(panes)) if panes else {}

    def _rankings(self, panes: dict[int, Counter[str]]) -> Iterator[tuple[datetime, Ranking]]:
        """Let each pane come into the window, from there into what is usual, and out of that."""
        size, before = self.window // self.every, (self.window + self.baseline) // self.every
        uses, usual = Counter[str](), Counter[str]()
        nothing = Counter[str]()
        for last in range(min(panes), max(panes) + size):
            left, forgotten = panes.get(last - size, nothing), panes.get(last - before, nothing)
            uses = uses + panes.get(last, nothing) - left
            usual = usual + left - forgotten
            start = last + 1 - size
            first = next((pane for pane in range(last + 1 - before, start) if pane in panes), start - 1)
            if uses:
                yield _EPOCH + (last + 1) * self.every, self._ranked(uses, usual, start - first)

    def _ranked(self, uses: Counter[str], usual: Counter[str], span: int) -> Ranking:
        size, floor = self.window // self.every, self.floor
        grown = ((count / max(usual[tag] * size / span, floor), count, tag) for tag, count in uses.items())
        return [(tag, count, growth) for growth, count, tag in sorted(grown, reverse=True)[: self.count]]
