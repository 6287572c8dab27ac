"""What came of a run of the shop: every copy, service and alert beside what the source says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from penstock.apps.demo import Report
from penstock.apps.demo.comparison import Comparison
from penstock.apps.demo.latency import latency_figures, percentile
from penstock.apps.shop.truth import Falls
from penstock.cli.output import milliseconds


@dataclass
class StandStill:
    """A service that stood still for a while: how far behind it was then, and how long payments took."""

    service: str
    since: datetime
    until: datetime | None = None
    behind: int = 0
    others: Sequence[float] = field(default_factory=list)  # seconds


@dataclass(frozen=True)
class Outcome:
    """Counted from the source and from each copy; nothing is assumed."""

    transactions: int
    copies: Mapping[str, Comparison]
    handled: Mapping[str, int]  # events by service, and "all"
    wrong: Mapping[str, int]  # rows by service
    expected: Falls
    alerted: Falls
    delays: Sequence[float]  # seconds, of orders in the steady time
    still: StandStill | None

    def report(self) -> Report:
        """The same for people."""
        rows = max((each.due for each in self.copies.values()), default=0)
        claim = f"{len(self.copies)} copies of {rows:,} rows as SQL over the source has them"
        return Report(f"{claim}: 0 lost, 0 duplicate, 0 wrong", [*self._figures()], [*self._problems()])

    def _problems(self) -> Iterator[str]:
        yield from (f"{copy}: {each}" for copy, found in self.copies.items() for each in found.problems)
        due = self.handled["all"]
        for service, wrong in self.wrong.items():
            handled = self.handled.get(service, 0)
            if wrong or handled != due or not due:
                yield f"{service}: {wrong:,} rows wrong, {handled:,} of {due:,} events handled"
        if self.alerted != self.expected:
            yield f"alerts: {_count(self.alerted):,} of {_count(self.expected):,}, or others than these"

    def _figures(self) -> Iterator[tuple[str, str, str]]:
        yield "transactions", f"{self.transactions:,}", "of SQL, each of them whole or not at all"
        for copy, found in self.copies.items():
            yield from found.figures(copy)
        for service, wrong in self.wrong.items():
            handled = f"of {self.handled['all']:,} order events handled, each once; {wrong:,} rows wrong"
            yield service, f"{self.handled.get(service, 0):,}", handled
        falls = f"of {_count(self.expected):,} falls under a threshold, by the movements of stock"
        yield "alerts", f"{_count(self.alerted):,}", falls
        yield from latency_figures(self.delays, "from the commit of an order to the view")
        if self.still is not None:
            yield from self._stood_still(self.still)

    def _stood_still(self, still: StandStill) -> Iterator[tuple[str, str, str]]:
        seconds = (still.until - still.since).total_seconds() if still.until else 0
        yield "stood still", f"{seconds:.0f} s", f"{still.service}, {still.behind:,} events behind then"
        p50, p99 = (milliseconds(percentile(still.others, share)) for share in (0.5, 0.99))
        yield "not hurt", p50, f"p50 of {len(still.others):,} payments meanwhile; p99 {p99}"


def _count(falls: Falls) -> int:
    return sum(map(len, falls.values()))
