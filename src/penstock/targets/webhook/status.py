"""The status of a webhook: what its ledger says was delivered, and what is a dead letter."""

import time
from dataclasses import dataclass

from penstock.identity import Identity
from penstock.log.broker import Broker
from penstock.log.client import asking
from penstock.log.last_record import last_record
from penstock.settings import Settings
from penstock.targets.webhook.record import Record


@dataclass(frozen=True)
class WebhookStatus:
    """How many events were delivered or are dead letters, and how many lanes leave the endpoint alone."""

    delivered: int
    dead: int
    resting: int

    @property
    def settled(self) -> int:
        return self.delivered + self.dead


def webhook_status(settings: Settings, flow: str, *, now: float | None = None) -> WebhookStatus:
    """Return the status of a flow's webhook by its label, as in "shop.partner"; nobody is shut out."""
    topic, moment = Identity(flow).ledger, time.time() if now is None else now
    found = Broker(settings).topics([topic])
    count = found[topic].partitions if found else 0
    with asking(f"read the ledger of {flow!r}"):
        values = [last_record(settings, topic, number, wait_for_open=False) for number in range(count)]
    records = [Record.from_value(value) for value in values]
    return WebhookStatus(
        sum(record.total.delivered for record in records),
        sum(record.total.dead for record in records),
        sum(record.circuit.until > moment for record in records),
    )
