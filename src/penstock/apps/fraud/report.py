"""What came of a run: counted from the log, nothing assumed."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeVar

from penstock.apps.demo.follower import Follower
from penstock.apps.fraud import bank_table
from penstock.apps.fraud.blocking import Blocking
from penstock.apps.fraud.checkpoints import FLOWS, checkpoints
from penstock.apps.fraud.events import Alert, Transaction, models, suspects, transactions
from penstock.apps.fraud.expected import Judge
from penstock.apps.fraud.listener import Listener, flow_of
from penstock.apps.fraud.status import Status
from penstock.apps.fraud.traffic import REASONS, Traffic
from penstock.events import Event
from penstock.log import Consumer, Topic
from penstock.settings import Settings

E = TypeVar("E", bound=Event)
_PATIENCE = 120.0
_LATE = 0.1  # seconds: an alert that took longer may have waited for a checkpoint


@dataclass(frozen=True)
class Heard:
    """What came out of all flows: alerts as they came, each alert once, and refused transactions."""

    alerts: Listener
    once: Follower[Alert]
    refusals: Follower[Alert]


@dataclass
class Report:
    """Counts in and out, how long alerts took, and how good each rule was."""

    rate: int
    pipeline: str = "fraud"
    sent: int = 0
    alerts: int = 0
    repeated: int = 0
    lost: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    missing: int = 0  # where each alert stands once
    doubled: int = 0
    once: list[float] = field(default_factory=list)  # seconds until alerts of the steady time stood there
    blocking: Blocking = field(default_factory=Blocking)
    miscounted: int = 0
    users: int = 0
    started_seconds: float = 0.0
    recovered_seconds: float = 0.0
    caught_up_seconds: float | None = None  # or not while there was traffic
    steady_since: float = 0.0
    steady_until: float = 0.0
    between: list[float] = field(default_factory=list)  # seconds that alerts took between checkpoints
    waited: list[float] = field(default_factory=list)  # and those that had to wait for one
    checkpoints: int = 0  # of the real-time flows, in the steady time
    quality: dict[str, tuple[float, float, int]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether exactly the alerts came that had to come."""
        others = self.miscounted + self.missing + self.doubled + self.blocking.wrong
        return self.alerts > 0 and not (self.lost or self.wrong or others)

    @property
    def latencies(self) -> list[float]:
        """How many seconds each alert took."""
        return self.between + self.waited


def checked(report: Report, settings: Settings, traffic: Traffic, heard: Heard, status: Status) -> Report:
    """Compare what was emitted with what the log calls for, and that with the labels; and count users."""
    compare(report, settings, traffic, heard, status)
    status.note = "the counts of users are compared"
    _count_users(report, settings, [alert for _, alert in heard.alerts.alerts.values()])
    return report


def compare(report: Report, settings: Settings, traffic: Traffic, heard: Heard, status: Status) -> None:
    """Compare what was emitted with what the log calls for, and that with the labels."""
    status.to_check, listener = traffic.sent, heard.alerts
    status.enter("check", "each transaction is judged again, plainly, from the log")
    judge = _judge(settings)
    expected = judge.alerts(_counted(_events(transactions, settings), status))
    status.note = f"{len(expected):,} alerts are called for; the last ones are waited for"
    _wait(lambda: expected.keys() <= listener.alerts.keys())
    emitted = {id: alert for id, (_, alert) in list(listener.alerts.items())}
    report.sent, report.alerts = traffic.sent, len(emitted)
    report.repeated = listener.heard - len(emitted)
    report.lost = expected.keys() - emitted.keys()
    report.wrong = {id for id, alert in emitted.items() if expected.get(id) != alert.evidence}
    report.quality = {reason: quality(reason, {*emitted}, traffic.labels) for reason in REASONS}
    status.note = "each of them is looked for where it stands once"
    _look_for_each(report, expected, heard.once)
    report.blocking = Blocking.of(heard.refusals.events(), judge)
    time_alerts(report, settings, list(listener.alerts.values()))


def _judge(settings: Settings) -> Judge:
    (*_, model) = _events(models, settings)
    return Judge(bank_table.read(settings), model)


def _look_for_each(report: Report, expected: Mapping[str, object], once: Follower[Alert]) -> None:
    _wait(lambda: len(once) >= len(expected))
    found = once.heard()
    ids = {alert.id for _, alert in found}
    report.missing, report.doubled = len(expected.keys() - ids), len(found) - len(ids)
    report.once = [
        moment - alert.at.timestamp()
        for moment, alert in found
        if report.steady_since < alert.at.timestamp() and moment < report.steady_until
    ]


def _counted(events: Iterator[Transaction], status: Status) -> Iterator[Transaction]:
    for event in events:
        status.checked += 1
        yield event


def quality(reason: str, emitted: set[str], labels: set[str]) -> tuple[float, float, int]:
    """Precision, recall, and how many there are to be found."""
    found = {id for id in emitted if id.endswith(f"/{reason}")}
    labelled = {id for id in labels if id.endswith(f"/{reason}")}
    right = len(found & labelled)
    return right / max(1, len(found)), right / max(1, len(labelled)), len(labelled)


def _count_users(report: Report, settings: Settings, emitted: Iterable[Alert]) -> None:
    expected = Counter(alert.user for alert in emitted)
    counted: dict[str, int] = {}

    def right() -> bool:
        counted.update({each.user: each.acts for each in _events(suspects, settings)})
        return counted == expected

    _wait(right)
    report.users = len(counted)
    report.miscounted = sum(expected[user] != counted.get(user) for user in {*expected, *counted})


def time_alerts(report: Report, settings: Settings, emitted: Sequence[tuple[float, Alert]]) -> None:
    """Note how long the alerts of the steady time took, those apart that had to wait for a checkpoint."""
    for flow in FLOWS:
        steady = sorted(
            (alert.at.timestamp(), heard - alert.at.timestamp())
            for heard, alert in emitted
            if flow_of(alert) == flow
            and report.steady_since < alert.at.timestamp()
            and heard < report.steady_until
        )
        moments = checkpoints(settings, flow, report.pipeline)
        report.checkpoints += sum(report.steady_since < moment < report.steady_until for moment in moments)
        pauses = [_pause(steady, moment) for moment in moments]
        for made, took in steady:
            waited = any(begin <= made <= end for begin, end in pauses)
            (report.waited if waited else report.between).append(took)


def _pause(alerts: list[tuple[float, float]], moment: float) -> tuple[float, float]:
    """From what waits for a checkpoint on, until an alert is emitted promptly again."""
    begin = min((made for made, took in alerts if made <= moment < made + took), default=moment)
    late = takewhile(lambda alert: alert[1] > _LATE, (alert for alert in alerts if alert[0] >= begin))
    return begin, max((made for made, _ in late), default=begin)


def _events(topic: Topic[E], settings: Settings) -> Iterator[E]:
    with Consumer(topic, settings) as consumer:
        yield from (record.event for record in consumer.records(idle="1 second") if record.event)


def _wait(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.5)
