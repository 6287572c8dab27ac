"""Fraud at work: traffic in, alerts out, a kill -9 on the way, and every alert checked against the log."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from penstock.apps.fraud.events import TOPICS, Model, history, models, profiles, transactions
from penstock.apps.fraud.listener import Listener
from penstock.apps.fraud.plan import Plan
from penstock.apps.fraud.report import Report, checked
from penstock.apps.fraud.traffic import Traffic, past_cases
from penstock.errors import InternalError
from penstock.log import Broker, Producer, apply
from penstock.settings import Settings
from penstock.testing import Driver

MODULE = "penstock.apps.fraud.pipeline"
CASES = 5_000
SPACING = 20  # seconds between two payments of an honest card
PATIENCE = 240.0
LINGER = "10 ms"  # with less, every few events are a request of their own for the broker and two flows
# A process that lives minutes: compiling for years takes the two cores that it needs.
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"}
Progress = Callable[[str], None]


def run_fraud(settings: Settings, plan: Plan, progress: Progress, model: Model | None = None) -> Report:
    """Run the application for a bounded time, and report what came of it; trains a model if none is given."""
    apply(TOPICS, Broker(settings))
    traffic = Traffic(honest=SPACING * plan.rate, scenarios=8 * plan.rate)
    with Producer(settings) as producer:
        producer.send_all(profiles, traffic.profiles())
        if model is not None:
            producer.send(models, model)
    if model is None:
        progress(f"{CASES:,} labelled cases of the past; a replay trains the model")
        _train(settings)
    driver = Driver("fraud", MODULE, replace(settings, spark={**QUICK, **settings.spark}))
    report = Report(rate=plan.rate)
    with Listener(settings) as listener, Producer(settings, linger=LINGER) as producer:
        run = _Run(driver, listener, producer, traffic, progress)
        try:
            run.all(plan, report)
            report = checked(report, settings, traffic, listener)
        finally:
            driver.kill()
    return report


def _train(settings: Settings) -> None:
    with Producer(settings) as producer:
        producer.send_all(history, past_cases(CASES))
    environment = os.environ | settings.environment()
    command = [sys.executable, "-m", "penstock.apps.fraud.model"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InternalError(f"the model could not be trained: {done.stderr[-500:]}")


@dataclass
class _Run:
    driver: Driver
    listener: Listener
    producer: Producer
    traffic: Traffic
    progress: Progress

    def all(self, plan: Plan, report: Report) -> None:
        self.progress("starting three flows on Spark: it loads the profiles first, then judges")
        began = time.monotonic()
        self.driver.start()
        self._send_until(lambda: self.listener.heard > 0, plan.rate // 10, "the first alert")
        report.started_seconds = time.monotonic() - began
        self._send_until(lambda: self.listener.up_to_date, plan.rate // 10, "alerts without delay")
        self._send_until(lambda: self.listener.keeps_up(plan.settled), plan.rate, "steady alerts")
        report.settled_seconds = time.monotonic() - began
        self.progress(f"{plan.rate:,} transactions a second for {plan.seconds} s, judged as they come")
        report.steady_since = time.time()
        self._send_for(plan.seconds, plan.rate)
        report.steady_until = time.time()
        self.progress("kill -9: driver, JVM and workers are gone; the traffic goes on")
        killed, before = time.monotonic(), self.listener.new
        self.driver.kill()
        self.driver.start()
        self._send_until(lambda: self.listener.new > before, plan.rate, "an alert after the kill")
        report.recovered_seconds = time.monotonic() - killed
        self.progress("the flows are back, and catch up")
        self._send_until(lambda: self.listener.up_to_date, plan.rate, "alerts without delay")
        report.caught_up_seconds = time.monotonic() - killed
        self._send_for(plan.after, plan.rate)
        self.producer.flush()
        self.progress("the traffic ends; checking every alert against the log")

    def _send_for(self, seconds: float, rate: int) -> None:
        deadline = time.monotonic() + seconds
        self._send(lambda: time.monotonic() >= deadline, rate)

    def _send_until(self, reached: Callable[[], bool], rate: int, what: str) -> None:
        deadline = time.monotonic() + PATIENCE

        def over() -> bool:
            if not self.driver.alive:
                raise InternalError(f"the flows have ended before {what}: {self.driver.last_words()}")
            if time.monotonic() > deadline:
                raise InternalError(
                    f"{what} did not come within {PATIENCE:.0f} s: {self.driver.last_words()}"
                )
            return reached()

        self._send(over, rate)

    def _send(self, over: Callable[[], bool], rate: int) -> None:
        began, sent = time.monotonic(), 0
        while not over():
            due = int(rate * (time.monotonic() - began))
            for _ in range(due - sent):
                self.producer.send(transactions, self.traffic.next(datetime.now(UTC)))
            sent = due
            time.sleep(0.002)
