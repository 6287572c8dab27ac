"""Fraud at work: traffic in, alerts out, a kill -9 on the way, and every alert checked against the log."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from penstock.apps.fraud.checkpoints import count_checkpoints
from penstock.apps.fraud.events import TOPICS, Model, models, profiles
from penstock.apps.fraud.listener import Listener
from penstock.apps.fraud.plan import QUICK, Plan
from penstock.apps.fraud.report import Report, checked
from penstock.apps.fraud.sender import Sender
from penstock.apps.fraud.status import Status
from penstock.apps.fraud.traffic import Traffic
from penstock.apps.fraud.training import CASES, Training
from penstock.errors import InternalError
from penstock.local import running
from penstock.log import Broker, Producer, apply
from penstock.settings import Settings
from penstock.testing import Driver

MODULE = "penstock.apps.fraud.pipeline"
SPACING = 20  # seconds between two payments of an honest card
LINGER = "10 ms"  # with less, every few events are a request of their own for the broker and two flows


def run_alone(plan: Plan, status: Status, module: str = MODULE) -> Report:
    """Run the application on a Kafka of its own, which is gone at the end."""
    with running(services=("kafka",)) as settings:
        report = run_fraud(settings, plan, status, module=module)
        status.enter("stop")
    return report


def run_fraud(
    settings: Settings, plan: Plan, status: Status, model: Model | None = None, module: str = MODULE
) -> Report:
    """Run the application for a bounded time, and report what came of it; trains a model if none is given.

    `module` is where its pipeline is declared.
    """
    apply(TOPICS, Broker(settings))
    traffic = Traffic(honest=SPACING * plan.rate, scenarios=8 * plan.rate)
    driver = Driver("fraud", module, replace(settings, spark={**QUICK, **settings.spark}))
    with Listener(settings) as listener, Producer(settings, linger=LINGER) as producer:
        status.watch(traffic, listener, partial(count_checkpoints, settings))
        run = _Run(settings, plan, status, driver, listener, Sender(producer, traffic))
        try:
            run.prepare(model)
            report = run.measure()
            producer.flush()
            return checked(report, settings, traffic, listener, status)
        finally:
            driver.kill()


@dataclass
class _Run:
    settings: Settings
    plan: Plan
    status: Status
    driver: Driver
    listener: Listener
    sender: Sender

    def prepare(self, model: Model | None) -> None:
        """Fill the tables: a profile for each card, and a model."""
        self.status.enter("model", f"a replay of {CASES:,} labelled cases, in Spark ML")
        with Producer(self.settings) as producer:
            producer.send_all(profiles, self.sender.traffic.profiles())
            if model is not None:
                producer.send(models, model)
        if model is None:
            with Training(self.settings) as training:
                self.sender.send_until(lambda: training.over, self.plan.rate_at_first, "the model")

    def measure(self) -> Report:
        report = Report(rate=self.plan.rate)
        self._start(report)
        self._warm_up()
        self._run_steadily(report)
        self._kill(report)
        return report

    def _start(self, report: Report) -> None:
        plan, began = self.plan, time.monotonic()
        self.status.enter("start", "the profiles are loaded first")
        self.driver.start()
        self._await(lambda: self.listener.heard > 0, plan.rate_at_first, "the first alert")
        report.started_seconds = time.monotonic() - began
        self.status.note = f"first alert after {report.started_seconds:.0f} s; the other flow is to come"
        self._await(lambda: self.listener.hears_both, plan.rate_at_first, "an alert of each flow")

    def _warm_up(self) -> None:
        """At the full rate until alerts keep up with it, but not for long."""
        plan = self.plan
        self.status.note = f"warming up at {plan.rate:,} transactions a second"
        self._await_within(plan.settled_within, lambda: self.listener.keeps_up(plan.settled), "steady alerts")

    def _run_steadily(self, report: Report) -> None:
        self.status.enter("steady", f"{self.plan.seconds} s at {self.plan.rate:,} a second")
        report.steady_since = time.time()
        self.sender.send_for(self.plan.seconds, self.plan.rate)
        report.steady_until = time.time()

    def _kill(self, report: Report) -> None:
        """The traffic goes on all the while."""
        self.status.enter("kill", "driver, JVM and workers are gone; they start again")
        rate, killed, before = self.plan.rate, time.monotonic(), self.listener.new
        self.driver.kill()
        self.driver.start()
        self._await(lambda: self.listener.new > before, rate, "an alert after the kill")
        report.recovered_seconds = time.monotonic() - killed
        self.status.note = f"back after {report.recovered_seconds:.0f} s; catching up"
        left = self.plan.caught_up_within - report.recovered_seconds
        if self._await_within(left, lambda: self.listener.up_to_date, "alerts without delay"):
            report.caught_up_seconds = time.monotonic() - killed
            self.status.note = f"without delay again after {report.caught_up_seconds:.0f} s"
            self.sender.send_for(self.plan.after, rate)

    def _await_within(self, seconds: float, reached: Callable[[], bool], what: str) -> bool:
        """Send at the full rate until the flows have got so far; False if they have not within a time."""
        deadline = time.monotonic() + seconds
        self._await(lambda: time.monotonic() > deadline or reached(), self.plan.rate, what)
        return reached()

    def _await(self, reached: Callable[[], bool], rate: int, what: str) -> None:
        """Send until the flows have got so far."""

        def over() -> bool:
            if not self.driver.alive:
                raise InternalError(f"the flows have ended before {what}: {self.driver.last_words()}")
            return reached()

        self.sender.send_until(over, rate, what)
