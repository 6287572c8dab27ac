"""What came of a run: counted from the log, nothing assumed."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.apps.fraud.events import Alert, models, profiles, suspects, transactions
from penstock.apps.fraud.expected import Judge
from penstock.apps.fraud.listener import Listener
from penstock.apps.fraud.traffic import REASONS, Traffic
from penstock.log import Consumer, Topic
from penstock.settings import Settings

_PATIENCE = 120.0


@dataclass
class Report:
    """Counts in and out, how long alerts took, and how good each rule was."""

    rate: int
    sent: int = 0
    alerts: int = 0
    repeated: int = 0
    lost: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    miscounted: int = 0
    users: int = 0
    started_seconds: float = 0.0
    settled_seconds: float = 0.0
    recovered_seconds: float = 0.0
    steady_since: float = 0.0
    steady_until: float = 0.0
    latencies: list[float] = field(default_factory=list)
    pause: float = 0.0
    quality: dict[str, tuple[float, float, int]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether exactly the alerts came that had to come."""
        return self.alerts > 0 and not (self.lost or self.wrong or self.miscounted)

    def percentile(self, share: float) -> float:
        """The milliseconds within which a share of the alerts came."""
        ordered = sorted(self.latencies) or [0.0]
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def checked(report: Report, settings: Settings, traffic: Traffic, listener: Listener) -> Report:
    """Compare what was told with what the log calls for, and that with the labels."""
    expected = _expected(settings)
    _wait(lambda: expected.keys() <= listener.told.keys())
    told = {id: alert for id, (_, alert) in list(listener.told.items())}
    report.sent, report.alerts = traffic.sent, len(told)
    report.repeated = listener.heard - len(told)
    report.lost = expected.keys() - told.keys()
    report.wrong = {id for id, alert in told.items() if expected.get(id) != alert.evidence}
    report.quality = {reason: quality(reason, {*told}, traffic.labels) for reason in REASONS}
    _count_users(report, settings, told)
    _time(report, listener)
    return report


def _expected(settings: Settings) -> dict[str, list[str]]:
    known = {profile.card: profile for profile in _events(profiles, settings)}
    (*_, model) = _events(models, settings)
    return Judge(known, model).alerts(_events(transactions, settings))


def quality(reason: str, told: set[str], labels: set[str]) -> tuple[float, float, int]:
    """Precision, recall, and how many there are to be found."""
    found = {id for id in told if id.endswith(f"/{reason}")}
    labelled = {id for id in labels if id.endswith(f"/{reason}")}
    right = len(found & labelled)
    return right / max(1, len(found)), right / max(1, len(labelled)), len(labelled)


def _count_users(report: Report, settings: Settings, told: dict[str, Alert]) -> None:
    expected = Counter(alert.user for alert in told.values())
    counted: dict[str, int] = {}

    def right() -> bool:
        counted.update({each.user: each.acts for each in _events(suspects, settings)})
        return counted == expected

    _wait(right)
    report.users = len(counted)
    report.miscounted = sum(expected[user] != counted.get(user) for user in {*expected, *counted})


def _time(report: Report, listener: Listener) -> None:
    steady = [
        (heard, heard - alert.at.timestamp())
        for heard, alert in listener.told.values()
        if report.steady_since < alert.at.timestamp() and heard < report.steady_until
    ]
    report.latencies = [took for _, took in steady]
    report.pause = max((took for took in report.latencies), default=0.0)


def _events(topic: Topic[Any], settings: Settings) -> Iterator[Any]:
    with Consumer(topic, settings) as consumer:
        yield from (record.event for record in consumer.records(idle="1 second") if record.event)


def _wait(reached: Any) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.5)
