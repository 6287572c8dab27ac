"""How far a sketch was from the truth."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import mean
from typing import Self

from penstock.apps.pageviews.events import TopPages
from penstock.apps.pageviews.truth import ten_of


@dataclass(frozen=True)
class SketchError:
    """Errors are shares of all views of a window; `found` is how many of the ten most viewed it had.

    `broken` counts estimates that are too low, or higher than `allowed`, and totals that are wrong.
    """

    windows: int
    missing: int
    largest: float
    mean: float
    allowed: float
    found: float
    broken: int

    @classmethod
    def of(cls, truth: Mapping[datetime, Counter[str]], emitted: Iterable[TopPages], tracked: int) -> Self:
        """Compare the last sketch of each window with what is exact; `tracked` are the sketch's counters."""
        allowed = 3.5 / tracked  # as `sketches.frequent` declares it
        last = {each.end: each for each in emitted if each.end in truth}
        shares = [
            (page.views - truth[end][page.url]) / each.views
            for end, each in last.items()
            for page in each.pages
        ]
        wrong_totals = sum(each.views != truth[end].total() for end, each in last.items())
        found = [len({page.url for page in each.pages} & {*ten_of(truth[end])}) for end, each in last.items()]
        broken = wrong_totals + sum(not 0 <= share <= allowed for share in shares)
        sizes = [*map(abs, shares)] or [0.0]
        return cls(
            len(last), len(truth) - len(last), max(sizes), mean(sizes), allowed, mean(found or [0]), broken
        )
