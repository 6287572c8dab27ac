"""The notifications application in its demo: requests in, a receiver behind it, each user notified once."""

import secrets
import time
from dataclasses import replace
from datetime import timedelta
from typing import Self

from penstock.apps.demo import Comparison, Figures, Report, Work
from penstock.apps.demo.latency import latency_figures
from penstock.apps.notifications.events import TOPICS, requested
from penstock.apps.notifications.pipeline import CONNECTION
from penstock.apps.notifications.receiver import Receiver
from penstock.apps.notifications.traffic import Traffic, round_of
from penstock.log import Broker, Producer, apply
from penstock.settings import Secret, Settings
from penstock.targets.webhook import webhook_status

FAILURES = {"failed": "answered 500", "slow": "too slow", "lost": "answers lost"}


class Notifications(Work):
    """Sends requests, and compares what users got with what is due to them."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.traffic = Traffic()
        self.asked: dict[str, float] = {}  # when the first request of a round was sent

    def __enter__(self) -> Self:
        apply(TOPICS, Broker(self.settings))
        secret = Secret(secrets.token_urlsafe())
        self.receiver = self.opened.enter_context(Receiver(secret))
        partner: dict[str, str | Secret] = {"url": self.receiver.url, "secret": secret}
        self.settings = replace(self.settings, connections={**self.settings.connections, CONNECTION: partner})
        self.producer = self.opened.enter_context(Producer(self.settings))
        return self

    def send(self, count: int) -> None:
        for _ in range(count):
            request = self.traffic.next()
            self.asked.setdefault(round_of(request.id), time.time())
            self.producer.send(requested, request)

    def finish(self) -> None:
        self.producer.flush()

    def has_begun(self) -> bool:
        return len(self.receiver.taken) > 0

    def is_settled(self) -> bool:
        return len(self.receiver.taken) >= len(self.traffic.due)

    def figures(self) -> Figures:
        counts = self.receiver.counts
        return [
            ("requests of three services", f"{self.traffic.sent:,}", f"{len(self.traffic.due):,} due"),
            ("notifications delivered", f"{len(self.receiver.taken):,}", "to their users"),
            ("duplicates refused by key", f"{counts['duplicates']:,}", f"{counts['failed']:,} answered 500"),
        ]

    def report(self) -> Report:
        taken = {key: body for key, (_, body) in self.receiver.taken.items()}
        received = [(round_of(key), (body["user"], body["occasion"])) for key, body in taken.items()]
        compared = Comparison.of(self.traffic.due, received)
        return Report(
            f"each of {compared.due:,} notifications reached its user, none of them twice",
            [*self._figures(), *compared.figures("notifications"), *self._latencies()],
            compared.problems,
        )

    def _figures(self) -> Figures:
        counts, status = self.receiver.counts, webhook_status(self.settings, "notifications.deliver")
        hours = f"{self.traffic.passed / timedelta(hours=1):.0f} hours"
        failures = ", ".join(f"{counts[name]:,} {what}" for name, what in FAILURES.items())
        return [
            ("asked for", f"{self.traffic.sent:,}", f"times, by three services, in {hours} of event time"),
            ("requests", f"{counts['requests']:,}", f"to the receiver: {failures}"),
            ("duplicates", f"{counts['duplicates']:,}", "recognised by the receiver, which refused them"),
            ("delivered", f"{status.delivered:,}", f"by the ledger; {status.dead:,} dead letters"),
        ]

    def _latencies(self) -> Figures:
        asked = {key: self.asked[round_of(key)] for key in self.receiver.taken}
        took = [at - asked[key] for key, (at, _) in self.receiver.taken.items() if self.is_steady(asked[key])]
        return latency_figures(took, "from the first request to the user, before the kill")
