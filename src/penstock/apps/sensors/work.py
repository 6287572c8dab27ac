"""The sensors application in its demo: readings in, alerts out, each compared with a plain look."""

import time
from collections import Counter
from typing import Self

from penstock.apps.demo import Comparison, Figures, Report, Work
from penstock.apps.demo.follower import Follower
from penstock.apps.demo.latency import Pace, latency_figures
from penstock.apps.sensors.events import TOPICS, Reading, alerts, readings
from penstock.apps.sensors.expected import alerts_of
from penstock.apps.sensors.pipeline import DELAY
from penstock.apps.sensors.traffic import Traffic
from penstock.durations import duration
from penstock.log import Broker, Producer, apply
from penstock.settings import Settings


class Sensors(Work):
    """Sends readings through gateways that are cut off now and then, and compares the alerts."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.traffic, self.pace = Traffic(), Pace()
        self.sent: dict[str, float] = {}

    def __enter__(self) -> Self:
        apply(TOPICS, Broker(self.settings))
        self.producer = self.opened.enter_context(Producer(self.settings))
        self.alerts = self.opened.enter_context(Follower(alerts, self.settings))
        return self

    def send(self, count: int) -> None:
        for _ in range(count):
            self._send(self.traffic.next())

    def finish(self) -> None:
        for reading in self.traffic.rest():
            self._send(reading)
        self.producer.flush()

    def _send(self, reading: Reading) -> None:
        self.producer.send(readings, reading)
        self.sent[reading.id] = time.time()
        self.pace.note(min(self.traffic.reached.values()), time.time())

    def has_begun(self) -> bool:
        return len({alert.kind for alert in self.alerts.events()}) == 2

    def is_settled(self) -> bool:
        return not self._compared().problems

    def figures(self) -> Figures:
        kinds = Counter(alert.kind for alert in self.alerts.events())
        return [
            ("readings", f"{self.traffic.sent:,}", f"{self.traffic.outages:,} times a gateway was cut off"),
            ("hot machines", f"{kinds['hot']:,}", "three readings above the limit"),
            ("silent machines", f"{kinds['silent']:,}", "no reading for 30 seconds"),
        ]

    def report(self) -> Report:
        compared = self._compared()
        claim = f"{compared.due:,} alerts, each as a plain look at all readings finds it"
        return Report(
            claim, [*self.figures(), *compared.figures("alerts"), *self._latencies()], compared.problems
        )

    def _compared(self) -> Comparison:
        watermark = min(self.traffic.reached.values()) - duration(DELAY)
        truth = alerts_of((machine.readings for machine in self.traffic.machines), watermark)
        return Comparison.of(truth, ((alert.id, (alert.kind, alert.at)) for alert in self.alerts.events()))

    def _latencies(self) -> Figures:
        took: dict[str, list[float]] = {"hot": [], "silent": []}
        for heard, alert in self.alerts.heard():
            late = self.pace.reached(alert.at + duration(DELAY))
            known = self.sent[alert.reading] if alert.kind == "hot" else late
            if known is not None and self.is_steady(known):
                took[alert.kind].append(heard - known)
        return [
            *latency_figures(took["hot"], "from a third hot reading to its alert, before the kill"),
            *latency_figures(took["silent"], "from when all gateways were past a silence to its alert"),
        ]
