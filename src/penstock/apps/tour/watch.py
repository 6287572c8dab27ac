"""The tour's second half: a flow in real time, a kill -9, its recovery, and every answer checked."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from penstock.apps.tour.live import WITHIN_SECONDS, live, pace
from penstock.apps.tour.payments import Payment
from penstock.errors import InternalError
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.settings import Settings
from penstock.testing import Driver

MODULE = "penstock.apps.tour.live"
RATE = 100  # payments a second
PATIENCE = 180.0
Progress = Callable[[str], None]


@dataclass
class LiveReport:
    """What went in and what came out; answers are recomputed from the log, so nothing is estimated."""

    sent: int = 0
    answered: int = 0
    repeated: int = 0
    missing: int = 0
    wrong: int = 0
    started_seconds: float = 0.0
    recovered_seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every payment was answered rightly, repetitions left out."""
        return not (self.missing or self.wrong) and self.answered == self.sent > 0

    def percentile(self, share: float) -> float:
        """The latency, in milliseconds, that a share of the answers kept to."""
        ordered = sorted(self.latencies) or [0.0]
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def watch_live(settings: Settings, seconds: int, progress: Progress) -> LiveReport:
    """Send payments for some seconds before and after a kill -9 of the flow, and check every answer."""
    report = LiveReport()
    apply([live, pace], Broker(settings))
    driver = Driver("tour", MODULE, replace(settings, spark={}))
    try:
        _run(driver, settings, seconds, report, progress)
    finally:
        driver.kill()
    progress("checking every answer against the log")
    _check(settings, report)
    return report


def _run(driver: Driver, settings: Settings, seconds: int, report: LiveReport, progress: Progress) -> None:
    traffic = _Traffic(settings, report)
    progress("starting a flow on Spark, in real time")
    began = time.monotonic()
    driver.start()
    traffic.send_until(lambda: _answers(settings) > 0, "the first answer")
    report.started_seconds = time.monotonic() - began
    traffic.send_until(lambda: _answers(settings) > report.sent - RATE, "the answers to what had waited")
    progress(f"payments at {RATE}/s, answered as they come")
    traffic.steady_since = datetime.now(UTC) + timedelta(seconds=1)
    traffic.send_for(seconds)
    traffic.steady_until = datetime.now(UTC)
    progress("kill -9: driver, JVM and workers are gone; payments go on")
    killed = time.monotonic()
    driver.kill()
    before = _answers(settings)
    driver.start()
    traffic.send_until(lambda: _answers(settings) > before, "an answer after the kill")
    report.recovered_seconds = time.monotonic() - killed
    progress("the flow is back, and catches up")
    traffic.send_for(seconds // 2)
    traffic.wait_until_answered()
    report.latencies = traffic.latencies()


def _answers(settings: Settings) -> int:
    return Broker(settings).end(pace.name, 0)


class _Traffic:
    """Payments at a steady rate, in short bursts."""

    def __init__(self, settings: Settings, report: LiveReport) -> None:
        self._settings = settings
        self._report = report
        self._random = Random(1)  # noqa: S311
        self._producer = Producer(settings, linger="1 ms")
        self.steady_since = self.steady_until = datetime.now(UTC)

    def send_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._burst()

    def send_until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not reached():
            if time.monotonic() > deadline:
                raise InternalError(f"{what} did not come within {PATIENCE:.0f} s")
            self._burst()

    def wait_until_answered(self) -> None:
        self._producer.flush()
        deadline = time.monotonic() + PATIENCE
        while len(_told(self._settings)) < self._report.sent and time.monotonic() < deadline:
            time.sleep(1)

    def latencies(self) -> list[float]:
        """Milliseconds from a payment's entry into the log to its answer's, while nothing was broken."""
        written = {
            f"{record.partition}/{record.offset}": record.written for record in _records(live, self._settings)
        }
        found: dict[str, float] = {}
        for record in _records(pace, self._settings):
            came = written[record.event.id]
            if self.steady_since < came < self.steady_until - timedelta(seconds=1):
                found.setdefault(record.event.id, (record.written - came) / timedelta(milliseconds=1))
        return list(found.values())

    def _burst(self) -> None:
        for _ in range(max(1, RATE // 20)):
            card, cents = f"card-{self._random.randrange(200):03d}", self._random.randrange(100, 50_000)
            where = self._random.uniform(-60, 60), self._random.uniform(-180, 180)
            self._producer.send(live, Payment(card, Decimal(cents) / 100, *where, at=datetime.now(UTC)))
            self._report.sent += 1
        time.sleep(0.05)


def _records(topic: Topic[Any], settings: Settings) -> Iterator[Any]:
    with Consumer(topic, settings) as consumer:
        yield from consumer.records(idle="1 second")


def _told(settings: Settings) -> dict[str, int]:
    """Every answer once, by its id."""
    with Consumer(pace, settings, deduplicate=True) as consumer:
        return {
            record.event.id: record.event.payments
            for record in consumer.records(idle="1 second")
            if record.event
        }


def _check(settings: Settings, report: LiveReport) -> None:
    expected, told = _expected(settings), _told(settings)
    report.answered = len(told)
    report.repeated = sum(1 for _ in _records(pace, settings)) - len(told)
    report.missing = len(expected.keys() - told.keys())
    report.wrong = sum(expected.get(id) != count for id, count in told.items())


def _expected(settings: Settings) -> dict[str, int]:
    """Count plainly, card by card, in the order of the log."""
    seen: dict[str, deque[datetime]] = defaultdict(lambda: deque(maxlen=64))
    counts = {}
    for record in _records(live, settings):
        times = seen[record.event.card]
        times.append(record.event.at)
        first = record.event.at - timedelta(seconds=WITHIN_SECONDS)
        counts[f"{record.partition}/{record.offset}"] = sum(first < each <= record.event.at for each in times)
    return counts
