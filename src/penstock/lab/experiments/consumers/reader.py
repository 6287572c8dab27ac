"""A consumer at a speed, as a process of its own: a group that can seek while it reads."""

import time
from datetime import UTC, datetime

from penstock.lab.experiments.consumers.reading import Reading, readings
from penstock.lab.worked import Orders, report
from penstock.log import Consumer, Record
from penstock.settings import Settings

_EVERY = 0.1  # seconds between two reports
_SLACK = 0.1  # seconds that it may be behind its speed, and read faster then
_FRESH_MS = 50.0  # once a live event was no older than this, the reader is at the end: all are measured


class Reader:
    """Reads at the speed of its orders, and reports where it is and how old live events were."""

    def __init__(self, orders: Orders, consumer: Consumer[Reading]) -> None:
        self._orders, self._consumer = orders, consumer
        self._position, self._read, self._seeks = 0, 0, 0
        self._latencies: list[float] = []
        self._is_at_end = False
        self._due = self._reported = time.monotonic()

    def run(self) -> None:
        """Read until it is over."""
        while not self._orders.is_over:
            for record in self._consumer.records(idle="300 ms"):
                self._heed(record)
                self._pace()
                if self._orders.is_over or "seek" in self._orders:
                    break
            self._seek()
            self._report()

    def _heed(self, record: Record[Reading]) -> None:
        """An event's latency is from when it was made to here."""
        self._position = record.offset + 1
        self._read += 1
        if record.event is not None and record.offset >= int(self._orders["first_live"]):
            age = (datetime.now(UTC) - record.event.at).total_seconds() * 1000
            self._is_at_end = self._is_at_end or age < _FRESH_MS
            if self._is_at_end:
                self._latencies.append(round(age, 2))

    def _pace(self) -> None:
        """Wait when it is ahead of its speed; what it could not do in time is not made up for."""
        now = time.monotonic()
        self._due = max(self._due, now - _SLACK) + 1 / float(self._orders["speed"])
        if self._due > now + _SLACK / 10:
            self._orders.rest(self._due - now)
        if now - self._reported > _EVERY:
            self._report()

    def _seek(self) -> None:
        wanted = self._orders.once("seek")
        if wanted is not None:
            self._consumer.seek(0, int(wanted))
            self._position, self._is_at_end = int(wanted), False
            self._seeks += 1

    def _report(self) -> None:
        now = time.monotonic()
        report(at=now, position=self._position, read=self._read, seeks=self._seeks, latencies=self._latencies)
        self._latencies, self._reported = [], now


def main() -> None:
    """Read the topic in the group of this process's orders."""
    orders = Orders()
    settings = Settings.load()
    with Consumer(
        readings(orders["topic"]), settings, group=orders["group"], kafka={"fetch.wait.max.ms": 10}
    ) as consumer:
        Reader(orders, consumer).run()


if __name__ == "__main__":
    main()
