"""What came of the views, beside what is due."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.apps.demo import Comparison, Figures, Report
from penstock.apps.demo.latency import latency_figures
from penstock.apps.pageviews.events import PageMinute, TopPages, View
from penstock.apps.pageviews.pipeline import TRACKED
from penstock.apps.pageviews.sketch_error import SketchError
from penstock.apps.pageviews.tables import Tables
from penstock.apps.pageviews.truth import Truth, ten_of


@dataclass(frozen=True)
class Outcome:
    """All results of the flows; `delays` are the seconds from a view's writing to its being counted."""

    truth: Truth
    tables: Tables
    running: Sequence[PageMinute]
    sketches: Sequence[TopPages]
    refused: Sequence[View]
    delays: Sequence[float] = ()

    def report(self, sent: int) -> Report:
        """Return the figures, and what is not as the truth has it."""
        figures = [*self._views(sent), *self._compared(), *self._sketched()]
        timed = latency_figures(
            self.delays, "from a view in the log to its minute's new count, before the kill"
        )
        return Report("no view is lost, counted twice or wrong", [*figures, *timed], self.problems)

    @cached_property
    def problems(self) -> list[str]:
        """What is not as the truth has it."""
        found = [f"{name}: {each}" for name, made in self._comparisons.items() for each in made.problems]
        wrongly = len({view.id for view in self.refused} - self.truth.too_late.keys())
        broken, missing = self._error.broken, self._error.missing
        counts = {"refused views were not too late": wrongly, "estimates are beyond the error": broken}
        counts["windows have no sketch"] = missing
        return found + [f"{count:,} {what}" for what, count in counts.items() if count]

    @cached_property
    def _error(self) -> SketchError:
        return SketchError.of(self.truth.windows(), self.sketches, TRACKED)

    @cached_property
    def _comparisons(self) -> dict[str, Comparison]:
        top = {end: ten_of(counts) for end, counts in self.truth.windows().items()}
        last = self.truth.certain({(row.url, row.start): row.views for row in self.running})
        return {
            "minutes": Comparison.of(self.truth.minutes(self.refused), self.tables.minutes.items()),
            "running": Comparison.of(self.truth.running(), last.items()),
            "top 10": Comparison.of(top, self.tables.top.items()),
        }

    def _views(self, sent: int) -> Figures:
        late, too_late = self.truth.late, len(self.truth.too_late)
        return [
            ("views", f"{sent:,}", f"sent, {late:,} of them 1.5 to 8 minutes late"),
            ("corrected", f"{self.tables.corrected:,}", "counts of a page and minute, by late views"),
            (
                "too late",
                f"{len(self.refused):,}",
                f"of {too_late:,} views that came after 25 minutes, set apart",
            ),
        ]

    def _compared(self) -> Figures:
        names = {
            "minutes": "counts of a page and minute in the table",
            "running": "counts as they were emitted last, early",
            "top 10": "rankings of a minute, one every ten seconds",
        }
        return [
            (name, f"{made.due:,}", f"{names[name]}: {made.lost:,} lost, {made.wrong:,} wrong")
            for name, made in self._comparisons.items()
        ]

    def _sketched(self) -> Figures:
        error = self._error
        errors = f"of all views its largest error, {error.mean:.2%} the mean one; allowed {error.allowed:.2%}"
        found = f"of ten found by {TRACKED} counters, on average over {error.windows:,} windows"
        return [("sketch", f"{error.found:.1f}", found), ("", f"{error.largest:.2%}", errors)]
