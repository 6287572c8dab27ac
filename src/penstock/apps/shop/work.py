"""The shop at work: SQL transactions in, views and alerts out, a service that stands still, all checked."""

import signal
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Self

import psycopg

from penstock.apps import demo
from penstock.apps.demo import Figures, Process, Report
from penstock.apps.demo.child import Child
from penstock.apps.demo.latency import percentile
from penstock.apps.shop.copies import compared
from penstock.apps.shop.database import create, perform
from penstock.apps.shop.events import CAPTURE, OUTBOX, TABLES, order_events
from penstock.apps.shop.outcome import Outcome, StandStill
from penstock.apps.shop.pipeline import CACHE, shop
from penstock.apps.shop.service import SERVICES
from penstock.apps.shop.traffic import CancelOrder, PlaceOrder, Traffic
from penstock.apps.shop.truth import alerted_falls, expected_falls, handled_events, payment_times, wrong_rows
from penstock.apps.shop.watch import Watch
from penstock.capture import Capture, Outbox, Store
from penstock.cli.output import milliseconds
from penstock.errors import InternalError
from penstock.log import Broker, apply
from penstock.settings import Settings

SLOW = "analytics"  # the service that stands still for a while
_STANDS_STILL = 10.0  # seconds
_PROMPT = 6.0  # seconds: what takes no longer to the view has not waited
_PATIENCE, _LOOK = 120.0, 0.2
_END = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"


class Work(demo.Work):
    """Sells, cancels, prices and restocks by SQL, while a capture, flows and three services follow."""

    def __init__(self, settings: Settings, flows: Sequence[str] = ()) -> None:
        super().__init__(settings)
        left_out = () if "redis" in settings.connections else (CACHE,)
        self.flows = flows or [name for name, flow in shop.flows.items() if flow.writes not in left_out]
        self._capture = Child("shop.capture", "penstock.cli", ("capture", "run", CAPTURE), settings)
        self._services = {
            name: Child(f"shop.{name}", "penstock.apps.shop.service", (name,), settings) for name in SERVICES
        }
        self.processes = (self._capture, *self._services.values())
        self._traffic, self._watch = Traffic(), Watch(settings)
        self._still: StandStill | None = None

    def __enter__(self) -> Self:
        address = self.settings.dsn().value
        self._connection = self.opened.enter_context(psycopg.connect(address, autocommit=True))
        create(self._connection)
        apply([order_events], Broker(self.settings))
        capture = Capture(CAPTURE, TABLES, outbox=Outbox(OUTBOX), heartbeat="1 second")
        Store(self.settings).put(capture)
        self.opened.enter_context(self._watch)
        return self

    def begin(self, stage: str) -> None:
        """Capture comes before the flows, which read what it writes; one service rests in the steady time."""
        if stage == "start":
            self._capture.start()
            self._await_capture()
        elif stage == "steady":
            self._services[SLOW].signal(signal.SIGSTOP)
            self._still = StandStill(SLOW, datetime.now(UTC))
        elif stage == "kill":
            self._wake()

    def send(self, count: int) -> None:
        for _ in range(count):
            act = self._traffic.next()
            perform(self._connection, act)
            if isinstance(act, PlaceOrder):
                self._watch.expect(act.order_id)
            elif isinstance(act, CancelOrder):
                self._watch.forget(act.order_id)
        if time.time() - self.began.get("steady", inf) > _STANDS_STILL:
            self._wake()

    def has_begun(self) -> bool:
        return bool(self._watch.seen)

    def keeps_up(self) -> bool:
        return self._watch.lately < _PROMPT

    def _wake(self) -> None:
        if self._still is not None and self._still.until is None:
            self._still.until, self._still.behind = datetime.now(UTC), self._watch.behind[SLOW]
            self._services[SLOW].signal(signal.SIGCONT)

    def finish(self) -> None:
        """The services change what is captured: they come to their end first."""
        self._await(self._are_handled, "the end of the services' work", self.processes)
        self._await_capture()

    def _are_handled(self) -> bool:
        handled = handled_events(self._connection)
        return all(handled.get(name, 0) >= handled["all"] for name in SERVICES)

    def _await_capture(self) -> None:
        """Wait until all that is committed now is in the log."""
        (end,) = self._connection.execute(_END).fetchone() or (0,)
        self._await(lambda: self._is_captured(end), "all changes in the log", [self._capture])

    def _is_captured(self, end: int) -> bool:
        found = Store(self.settings).position(CAPTURE)
        return found is not None and found.lsn >= end and all(each.done for each in found.tables.values())

    def _await(self, reached: Callable[[], bool], what: str, processes: Sequence[Process]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not reached():
            dead = next((each for each in processes if not each.alive), None)
            if dead is not None or time.monotonic() > deadline:
                said = f": {dead.last_words()}" if dead else f" within {_PATIENCE:.0f} s"
                raise InternalError(f"{what} did not come{said}")
            time.sleep(_LOOK)

    def is_settled(self) -> bool:
        return not any(each.problems for each in compared(self.settings, self.flows).values())

    def figures(self) -> Figures:
        traffic, watch = self._traffic, self._watch
        lately = milliseconds(percentile([took for _, took in list(watch.seen)[-100:]], 0.5))
        behind = ", ".join(f"{name} {count:,}" for name, count in watch.behind.items())
        acts = f"{traffic.cancelled:,} cancelled, {traffic.prices:,} prices changed"
        seen = f"{watch.waiting:,} wait; lately {lately} after the commit"
        return [
            ("orders", f"{traffic.placed:,}", acts),
            ("in the view", f"{len(watch.seen):,}", seen),
            ("behind", f"{max(watch.behind.values()):,}", f"events of orders: {behind}"),
        ]

    def report(self) -> Report:
        expected, alerted = expected_falls(self._connection), alerted_falls(self.settings)
        steady = [took for placed, took in self._watch.seen if self.is_steady(placed)]
        if self._still is not None:
            self._still.others = payment_times(self._connection, self._still.since, self._still.until)
        return Outcome(
            transactions=self._traffic.made,
            copies=compared(self.settings, self.flows),
            handled=handled_events(self._connection),
            wrong=wrong_rows(self._connection),
            expected=expected,
            alerted=alerted,
            delays=steady,
            still=self._still,
        ).report()
