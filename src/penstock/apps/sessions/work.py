"""The sessions application in its demo: views in, visits out, compared with a plain sessionizer."""

import time
from collections import Counter
from typing import Self

import psycopg

from penstock.apps.demo import Comparison, Figures, Report, Work
from penstock.apps.demo.follower import Follower
from penstock.apps.demo.latency import Pace, latency_figures
from penstock.apps.sessions.events import TOPICS, too_late, views, visits
from penstock.apps.sessions.expected import Key, Value, same, visits_of
from penstock.apps.sessions.pipeline import DELAY, TABLE
from penstock.apps.sessions.traffic import Traffic
from penstock.durations import duration
from penstock.log import Broker, Producer, apply
from penstock.settings import Settings

_ROWS = f'SELECT "user", start, "end", rows, landing, last, median_ms, p95_ms FROM {TABLE}'  # noqa: S608


class Sessions(Work):
    """Sends views, and compares the table of visits with what all views make that were not too late."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.traffic, self.pace = Traffic(), Pace()

    def __enter__(self) -> Self:
        apply(TOPICS, Broker(self.settings))
        self.producer = self.opened.enter_context(Producer(self.settings))
        self.visits = self.opened.enter_context(Follower(visits, self.settings))
        self.too_late = self.opened.enter_context(Follower(too_late, self.settings))
        return self

    def send(self, count: int) -> None:
        for _ in range(count):
            view = self.traffic.next()
            self.producer.send(views, view)
            self.pace.note(view.at, time.time())

    def finish(self) -> None:
        self.producer.send_all(views, self.traffic.rest())
        for view, partition in self.traffic.closing(views.partitions):
            self.producer.send(views, view, partition=partition)
        self.producer.flush()

    def has_begun(self) -> bool:
        return len(self.visits) > 0

    def is_settled(self) -> bool:
        return not self._compared().problems

    def figures(self) -> Figures:
        kinds = Counter(visit.kind for visit in self.visits.events())
        return [
            ("views", f"{len(self.traffic.sent):,}", f"{len(self.too_late):,} of them too late"),
            ("visits", f"{kinds['on time']:,}", "emitted when they were over"),
            ("corrected", f"{kinds['corrected']:,}", f"{kinds['retracted']:,} retracted"),
        ]

    def report(self) -> Report:
        compared, results = self._compared(), self.visits.events()
        repeated = len(results) - len({result.id for result in results})
        problems = [*compared.problems, *([f"{repeated:,} results emitted twice"] if repeated else [])]
        claim = f"{compared.due:,} visits are as a plain sessionizer finds them in all views"
        return Report(claim, [*self._counted(), *compared.figures("visits"), *self._latencies()], problems)

    def _compared(self) -> Comparison:
        """The table beside the visits of all views that were in time."""
        lost = {view.id for view in self.too_late.events()}
        truth = visits_of(view for view in self.traffic.sent if view.id not in lost)
        return Comparison.of(truth, self._rows(), same)

    def _rows(self) -> list[tuple[Key, Value]]:
        with psycopg.connect(self.settings.dsn().value) as connection:
            return [((user, start), tuple(rest)) for user, start, *rest in connection.execute(_ROWS)]

    def _counted(self) -> Figures:
        kinds = Counter(visit.kind for visit in self.visits.events())
        return [
            ("views", f"{len(self.traffic.sent):,}", f"{len(self.too_late):,} too late, in a side output"),
            ("results", f"{kinds.total():,}", ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common())),
        ]

    def _latencies(self) -> Figures:
        delay, took = duration(DELAY), list[float]()
        for heard, visit in self.visits.heard():
            over = self.pace.reached(visit.end + delay) if visit.kind == "on time" else None
            if over is not None and self.is_steady(over):
                took.append(heard - over)
        return latency_figures(took, "from the end of a visit to its result, before the kill")
