"""The bank's side of the demo: transactions in, alerts out, each of them checked."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

from penstock.apps.demo import Figures, Report
from penstock.apps.demo.child import Child
from penstock.apps.demo.follower import Follower
from penstock.apps.demo.latency import latency_figures, percentile
from penstock.apps.fraud import bank_table, report
from penstock.apps.fraud.events import TOPICS, Model, alerts_once, models, refused, transactions
from penstock.apps.fraud.listener import Listener
from penstock.apps.fraud.model import NAME
from penstock.apps.fraud.report import Heard
from penstock.apps.fraud.status import Status
from penstock.apps.fraud.traffic import Traffic
from penstock.cli.output import milliseconds
from penstock.log import Broker, Producer, apply
from penstock.settings import Settings

HONEST, SCENARIOS = 6_000, 1_500  # cards
WEIGHTS = {"ratio": 2.77, "far": 1.22}  # as `penstock demo fraud` finds them in the history
BIAS = -12.47
_LATELY = 10.0  # seconds


class Cards:
    """Sends transactions with labelled fraud, and listens to what the flows make of them."""

    def __init__(self, settings: Settings, opened: ExitStack) -> None:
        self._settings, self.traffic = settings, Traffic(HONEST, SCENARIOS)
        apply(TOPICS, Broker(settings))
        bank_table.fill(settings, self.traffic.profiles())
        self._producer = opened.enter_context(Producer(settings, linger="10 ms"))
        self._producer.send(models, Model(NAME, BIAS, WEIGHTS, datetime.now(UTC)))
        listener = opened.enter_context(Listener(settings))
        once, refusals = (opened.enter_context(Follower(each, settings)) for each in (alerts_once, refused))
        self.heard = Heard(listener, once, refusals)
        self.capture = Child("fraud.capture", "penstock.cli", ("capture", "run", "fraud"), settings)

    def send(self, count: int) -> None:
        """Send the next transactions."""
        for _ in range(count):
            self._producer.send(transactions, self.traffic.next(datetime.now(UTC)))

    def flush(self) -> None:
        """Wait until all of them are in the log."""
        self._producer.flush()

    @property
    def has_begun(self) -> bool:
        """Whether all rules are at work."""
        return self.heard.alerts.hears_both

    @property
    def is_prompt(self) -> bool:
        """Whether alerts come without delay."""
        return self.heard.alerts.up_to_date

    def figures(self) -> Figures:
        """What is shown while it runs."""
        listener, since = self.heard.alerts, time.time() - _LATELY
        took = [seconds for heard, seconds, _ in list(listener.recent) if heard > since]
        p50, p99 = (milliseconds(percentile(took, share)) for share in (0.5, 0.99))
        last = next((alert for *_, alert in list(listener.recent)[-1:]), None)
        newest = f"{last.card} {last.reason}, {len(last.evidence)} as evidence" if last else "none yet"
        return [
            ("card transactions", f"{self.traffic.sent:,}", newest),
            ("alerts", f"{listener.new:,}", f"lately p50 {p50}, p99 {p99}"),
            ("refused", f"{len(self.heard.refusals):,}", "transactions of blocked cards"),
        ]

    def report(self, since: float, until: float) -> Report:
        """Judge every transaction again, plainly, from the log, and compare."""
        found = report.Report(0, pipeline="platform", steady_since=since, steady_until=until)
        report.compare(found, self._settings, self.traffic, self.heard, Status())
        claim = f"{found.alerts:,} alerts as the log calls for them"
        return Report(claim, [*_figures(found)], [*_problems(found)])


def _problems(found: report.Report) -> Iterator[str]:
    if not found.alerts:
        yield "there was no alert"
    counts = {
        "alerts lost": len(found.lost),
        "alerts wrong": len(found.wrong),
        "missing where each stands once": found.missing,
        "twice there": found.doubled,
        "refused for nothing": found.blocking.wrong,
    }
    yield from (f"{count:,} {what}" for what, count in counts.items() if count)


def _figures(found: report.Report) -> Iterator[tuple[str, str, str]]:
    yield "card transactions", f"{found.sent:,}", "in, each judged again from the log"
    lost = (
        f"{len(found.lost):,} lost, {len(found.wrong):,} wrong, {found.repeated:,} re-emitted after the kill"
    )
    yield "alerts", f"{found.alerts:,}", f"out; {lost}"
    once = f"p50 {milliseconds(percentile(found.once, 0.5))} after the transaction"
    doubled = f"{found.missing:,} lost, {found.doubled:,} duplicate"
    yield "  each once", f"{found.alerts - found.missing:,}", f"{doubled}; {once}"
    passed = f"of blocked cards; {found.blocking.passed:,} passed before the block reached them"
    yield "  refused", f"{found.blocking.refused:,}", passed
    right = [
        f"{reason} {precision:.2f}/{recall:.2f}" for reason, (precision, recall, _) in found.quality.items()
    ]
    yield "precision/recall", f"{len(right)} rules", ", ".join(right)
    yield from latency_figures(found.latencies, "from a transaction to its alert, checkpoints included")
