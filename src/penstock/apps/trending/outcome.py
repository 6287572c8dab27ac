"""What each way has seen of the trends, and when; and whether its rankings are right."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from penstock.apps.demo import Comparison, Figures, Report
from penstock.apps.demo.latency import latency_figures
from penstock.apps.trending.events import BatchRun, Trend
from penstock.apps.trending.pipeline import BASELINE, COUNT, FLOOR, HOP, WINDOW
from penstock.apps.trending.traffic import Planted
from penstock.apps.trending.truth import Ranking, Rankings
from penstock.durations import duration

Heard = Sequence[tuple[float, Trend]]  # with the seconds since 1970 at which it was heard


@dataclass(frozen=True)
class Seen:
    """A ranking as somebody saw it: when, of which time, and its tags."""

    heard: float
    end: datetime
    tags: frozenset[str]


@dataclass(frozen=True)
class Outcome:
    """All rankings of the three ways; `since` and `until` are the bounds of the steady time."""

    posts: Sequence[tuple[str, datetime]]
    planted: Sequence[Planted]
    hopping: Heard
    tumbling: Heard
    batch: Sequence[tuple[float, BatchRun]]
    since: float
    until: float

    def report(self) -> Report:
        """Return the figures, and what is not as the truth has it."""
        figures = [("posts", f"{len(self.posts):,}", f"with {len(self.planted)} trends planted among them")]
        figures += [*self._compared(), *self._found(), *self._batches()]
        ages = [heard - row.end.timestamp() for heard, row in self.hopping if self._is_steady(heard, row.end)]
        timed = latency_figures(ages, f"from a window's end to its ranking, every {HOP}")
        return Report("every ranking is right, and every trend was found", [*figures, *timed], self.problems)

    @cached_property
    def problems(self) -> list[str]:
        """What is not as the truth has it."""
        found = [f"{name}: {each}" for name, made in self._comparisons.items() for each in made.problems]
        missed = [each.tag for each in self.planted if delay(each, self._ways["hopping"]) is None]
        return found + [f"#{tag} was not found" for tag in missed]

    @cached_property
    def _comparisons(self) -> dict[str, Comparison]:
        every = {"hopping": HOP, "tumbling": WINDOW}
        heard = {"hopping": self.hopping, "tumbling": self.tumbling}
        return {
            name: Comparison.of(due(self.posts, every[name]), ranked(row for _, row in heard[name]), same)
            for name in every
        }

    @cached_property
    def _ways(self) -> dict[str, list[Seen]]:
        runs = [Seen(heard, run.end, frozenset(run.tags)) for heard, run in self.batch]
        return {"hopping": seen(self.hopping), "batch": runs, "tumbling": seen(self.tumbling)}

    def _compared(self) -> Figures:
        return [
            (
                name,
                f"{made.due:,}",
                f"rankings: {made.lost:,} lost, {made.wrong:,} wrong, {made.duplicate:,} twice",
            )
            for name, made in self._comparisons.items()
        ]

    def _found(self) -> Iterator[tuple[str, str, str]]:
        """When each way has found each trend."""
        for trend in self.planted:
            through = "" if trend.began.timestamp() < self.until else ", through the kill"
            delays = {name: delay(trend, rankings) for name, rankings in self._ways.items()}
            others = (f"{name} {_seconds(delays[name])}" for name in ("batch", "tumbling"))
            yield (
                f"#{trend.tag}",
                _seconds(delays["hopping"]),
                f"until it was found{through}; {', '.join(others)}",
            )

    def _batches(self) -> Figures:
        runs = [run for heard, run in self.batch if self._is_steady(heard, run.end)]
        if not runs:
            return []
        longest, read = max(run.seconds for run in runs), sum(run.read for run in runs)
        return [
            ("batch", _seconds(longest), f"the longest of {len(runs)} runs, which read {read:,} posts in all")
        ]

    def _is_steady(self, heard: float, end: datetime) -> bool:
        return self.since < end.timestamp() and heard < self.until


def due(posts: Sequence[tuple[str, datetime]], every: str) -> dict[datetime, Ranking]:
    """The rankings of posts; those that the closing posts are in stay open."""
    rankings = Rankings(COUNT, duration(WINDOW), duration(every), duration(BASELINE), FLOOR).of(posts)
    last = max((at for _, at in posts), default=None)
    return {end: ranking for end, ranking in rankings.items() if last is not None and end <= last}


def ranked(trends: Iterable[Trend]) -> Iterator[tuple[datetime, Ranking]]:
    """Put the places of each window together; a place that came twice is another ranking of the window."""
    rounds: dict[tuple[datetime, int], dict[int, Trend]] = {}
    for trend in trends:
        number = 0
        while trend.place in rounds.setdefault((trend.end, number), {}):
            number += 1
        rounds[trend.end, number][trend.place] = trend
    for (end, _), places in rounds.items():
        yield end, [(each.tag, each.uses, each.growth) for _, each in sorted(places.items())]


def same(due: Ranking, found: Ranking) -> bool:
    """Whether two rankings are equal, but for rounding."""
    exact = [each[:2] for each in due] == [each[:2] for each in found]
    return exact and all(
        abs(one[2] - other[2]) < 1e-9 * one[2] for one, other in zip(due, found, strict=True)
    )


def seen(heard: Heard) -> list[Seen]:
    """Rankings as they were heard: a place is seen when it comes."""
    return [Seen(moment, trend.end, frozenset([trend.tag])) for moment, trend in heard]


def delay(trend: Planted, rankings: Iterable[Seen]) -> float | None:
    """The seconds from a trend's beginning until a ranking of a later time had it."""
    found = (each.heard for each in rankings if trend.tag in each.tags and each.end > trend.began)
    first = min(found, default=None)
    return None if first is None else first - trend.began.timestamp()


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s"
