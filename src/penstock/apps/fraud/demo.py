"""Fraud at work: traffic in, alerts out, a kill -9 on the way, and every alert checked against the log."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from penstock.apps.demo.child import Child
from penstock.apps.demo.follower import Follower
from penstock.apps.demo.processes import Processes
from penstock.apps.demo.work import Process
from penstock.apps.fraud import bank_table
from penstock.apps.fraud.checkpoints import count_checkpoints
from penstock.apps.fraud.events import TOPICS, Model, alerts_once, models, refused
from penstock.apps.fraud.listener import Listener
from penstock.apps.fraud.plan import QUICK, Plan
from penstock.apps.fraud.report import Heard, Report, checked
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
    """Run the application on services of its own, which are gone at the end."""
    with running(services=("kafka", "postgres")) as settings:
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
    capture = Child("fraud.capture", "penstock.cli", ("capture", "run", bank_table.CAPTURE.name), settings)
    with (
        Listener(settings) as listener,
        Follower(alerts_once, settings) as once,
        Follower(refused, settings) as refusals,
        Producer(settings, linger=LINGER) as producer,
    ):
        status.watch(traffic, listener, partial(count_checkpoints, settings))
        flows = Processes((capture, driver))
        run = _Run(settings, plan, status, flows, listener, Sender(producer, traffic))
        try:
            run.prepare(model, capture)
            report = run.measure()
            producer.flush()
            return checked(report, settings, traffic, Heard(listener, once, refusals), status)
        finally:
            flows.kill()


@dataclass
class _Run:
    settings: Settings
    plan: Plan
    status: Status
    driver: Process
    listener: Listener
    sender: Sender

    def prepare(self, model: Model | None, capture: Process) -> None:
        """Fill the tables: a profile for each card, which is captured, and a model."""
        self.status.enter("model", f"a replay of {CASES:,} labelled cases, in Spark ML")
        bank_table.fill(self.settings, self.sender.traffic.profiles())
        capture.start()
        if model is not None:
            with Producer(self.settings) as producer:
                producer.send(models, model)
        else:
            with Training(self.settings) as training:
                self.sender.send_until(lambda: training.over, self.plan.rate_at_first, "the model")
        self.status.note = "the profiles are captured"
        bank_table.await_captured(self.settings)

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
