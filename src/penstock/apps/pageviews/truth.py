"""What is due of the views that were sent: in each minute, and among the ten most viewed pages."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from penstock.apps.pageviews.events import View

Place = tuple[str, datetime]  # a page, and the beginning of a minute
Ranked = dict[str, tuple[int, int]]  # pages with their rank and views
_MINUTE, _HOP = timedelta(minutes=1), timedelta(seconds=10)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Truth:
    """Every view that was sent: `prompt` are on time, `too_late` can't count, `open` are of the last."""

    visitors: dict[Place, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    prompt: list[View] = field(default_factory=list)
    late: int = 0
    too_late: dict[str, Place] = field(default_factory=dict)  # by the view's id
    open: Counter[Place] = field(default_factory=Counter)

    def note(self, view: View) -> View:
        """Count a view in its minute."""
        self.visitors[place_of(view)][view.visitor] += 1
        return view

    def minutes(self, refused: Iterable[View]) -> dict[Place, tuple[int, int]]:
        """How many views, and of how many visitors, each page and minute has without those refused."""
        left = {place: Counter(each) for place, each in self.visitors.items()}
        for view in refused:
            left[place_of(view)][view.visitor] -= 1
        counted = {place: +each for place, each in left.items()}
        return {place: (each.total(), len(each)) for place, each in counted.items() if each}

    def running(self) -> dict[Place, int]:
        """How many views each page and minute has so far, if that is certain."""
        return self.certain({place: each.total() for place, each in self.visitors.items()} | dict(self.open))

    def certain(self, counted: Mapping[Place, int]) -> dict[Place, int]:
        """Leave out minutes so long ago that whether a view counts depends on when a batch began."""
        long_ago = {*self.too_late.values()}
        return {place: views for place, views in counted.items() if place not in long_ago}

    def windows(self) -> dict[datetime, Counter[str]]:
        """How often each page was viewed in the minute before every ten seconds, by what was on time."""
        found: dict[datetime, Counter[str]] = defaultdict(Counter)
        for view in self.prompt:
            first = _EPOCH + _HOP * ((view.at - _EPOCH) // _HOP + 1)
            for hop in range(_MINUTE // _HOP):
                found[first + hop * _HOP][view.url] += 1
        return found


def ten_of(counts: Counter[str]) -> Ranked:
    """The ten most viewed pages; of equal ones those with the greater names."""
    first = sorted(counts.items(), key=lambda each: (each[1], each[0]), reverse=True)[:10]
    return {url: (1 + sum(other > count for _, other in first), count) for url, count in first}


def place_of(view: View) -> Place:
    """The page of a view, and the minute that it belongs to."""
    return view.url, view.at.replace(second=0, microsecond=0)
