"""The enrichment application in its demo: activity and changes of a table in, events with countries out."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from operator import contains
from typing import Self

import psycopg

from penstock.apps.demo import Comparison, Figures, Report, Work
from penstock.apps.demo.child import Child
from penstock.apps.demo.follower import Follower
from penstock.apps.demo.latency import latency_figures
from penstock.apps.enrichment.database import create, perform, written
from penstock.apps.enrichment.events import CAPTURE, SOURCE, TOPICS, Activity, activity, enriched
from penstock.apps.enrichment.history import History
from penstock.apps.enrichment.pipeline import enrichment
from penstock.apps.enrichment.traffic import USERS, Traffic
from penstock.capture import Capture, Store
from penstock.cli.output import milliseconds
from penstock.errors import InternalError
from penstock.log import Broker, Producer, apply
from penstock.settings import Settings
from penstock.testing import wait_until_caught_up

PER_MOVE = 10  # events; at 1,000 events a second 100 rows change
_PATIENCE, _LOOK = 180.0, 0.2  # seconds


class Enrichment(Work):
    """Sends activity, moves users in the database, and compares the countries that events were given."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.traffic, self.history = Traffic(), History()
        self.sent: dict[str, tuple[float, Activity]] = {}
        self.final: dict[str, str | None] = {}
        self.capture = Child("enrichment.capture", "penstock.cli", ("capture", "run", CAPTURE), settings)
        self.processes = (self.capture,)

    def __enter__(self) -> Self:
        """Fill the table, and let the capture bring its rows to the log before any flow reads them."""
        address = self.settings.dsn().value
        self.connection = self.opened.enter_context(psycopg.connect(address, autocommit=True))
        create(self.connection)
        apply(TOPICS, Broker(self.settings))
        Store(self.settings).put(Capture(CAPTURE, (SOURCE,), heartbeat="1 second"))
        self.opened.callback(self.capture.kill)
        self.capture.start()
        self._await_capture()
        self.capture.kill()
        self.producer = self.opened.enter_context(Producer(self.settings))
        self.enriched = self.opened.enter_context(Follower(enriched, self.settings))
        return self

    def send(self, count: int) -> None:
        now = datetime.now(UTC)
        self._send(self.traffic.next(now) for _ in range(count))
        due = self.traffic.sent // PER_MOVE - self.traffic.moved
        moves = [self.traffic.move() for _ in range(due)]
        perform(self.connection, moves)
        for move in moves:
            self.history.add(move, time.time())

    def finish(self) -> None:
        """When every change has been read, everybody who has moved does something once more."""
        self.producer.flush()
        self._await_capture()
        wait_until_caught_up(enrichment, self.settings, _PATIENCE)
        last = [*self.traffic.final(datetime.now(UTC))]
        self.final = {event.id: self.traffic.country(event.user_id) for event in last}
        self._send(last)
        self.producer.flush()

    def _send(self, events: Iterable[Activity]) -> None:
        for event in events:
            self.producer.send(activity, event)
            self.sent[event.id] = time.time(), event

    def _await_capture(self) -> None:
        """Wait until all that is committed now is in the log."""
        end, deadline = written(self.connection), time.monotonic() + _PATIENCE
        while not self._is_captured(end):
            if not self.capture.alive or time.monotonic() > deadline:
                raise InternalError(f"the capture does not get on: {self.capture.last_words()}")
            time.sleep(_LOOK)

    def _is_captured(self, end: int) -> bool:
        found = Store(self.settings).position(CAPTURE)
        return found is not None and found.lsn >= end and all(each.done for each in found.tables.values())

    def has_begun(self) -> bool:
        return len(self.enriched) > 0

    def is_settled(self) -> bool:
        return len(self.enriched) >= len(self.sent)

    def figures(self) -> Figures:
        return [
            ("events", f"{self.traffic.sent:,}", f"of {USERS:,} users in a captured table"),
            ("changes of the table", f"{self.traffic.moved:,}", "users have moved meanwhile"),
            ("with their country", f"{len(self.enriched):,}", "events"),
        ]

    def report(self) -> Report:
        during, after = self._compared()
        return Report(
            f"{during.due + after.due:,} events have a country of their user, {after.due:,} the last one",
            [
                ("moved", f"{self.traffic.moved:,}", f"times one of {USERS:,} users"),
                *during.figures("while users moved"),
                *after.figures("after the last move"),
                *self._latencies(),
            ],
            [*during.problems, *after.problems],
        )

    def _compared(self) -> tuple[Comparison, Comparison]:
        """Events may meet a change on its way, so any country until then will do; but not after the last."""
        heard = {event.id: moment for moment, event in self.enriched.heard()}
        had = {
            id: self.history.until(event.user_id, heard.get(id, sent))
            for id, (sent, event) in self.sent.items()
            if id not in self.final
        }
        found = [(event.id, event.country) for event in self.enriched.events()]
        during = Comparison.of(had, (each for each in found if each[0] not in self.final), contains)
        return during, Comparison.of(self.final, (each for each in found if each[0] in self.final))

    def _latencies(self) -> Figures:
        steady = [
            (heard, *self.sent[event.id], event.country)
            for heard, event in self.enriched.heard()
            if self.is_steady(self.sent[event.id][0])
        ]
        stale = [self.history.staleness(event.user_id, country, sent) for _, sent, event, country in steady]
        behind = sum(each > 0 for each in stale)
        return [
            *latency_figures(
                [heard - sent for heard, sent, _, _ in steady], "to the result, before the kill"
            ),
            ("staleness", milliseconds(1000 * max(stale, default=0.0)), f"at most, of {behind:,} events"),
        ]
