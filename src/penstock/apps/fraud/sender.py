"""Sends the traffic at a rate, while something else is waited for."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.apps.fraud.events import transactions
from penstock.apps.fraud.traffic import Traffic
from penstock.errors import InternalError
from penstock.log import Producer

PATIENCE = 240.0


@dataclass
class Sender:
    """Sends what the traffic makes, as it is made."""

    producer: Producer
    traffic: Traffic

    def send_for(self, seconds: float, rate: int) -> None:
        """Send so many transactions a second for a time."""
        deadline = time.monotonic() + seconds
        self._send(lambda: time.monotonic() >= deadline, rate)

    def send_until(self, reached: Callable[[], bool], rate: int, what: str) -> None:
        """Send so many transactions a second until something is reached; not for ever."""
        deadline = time.monotonic() + PATIENCE

        def over() -> bool:
            if time.monotonic() > deadline:
                raise InternalError(f"{what} did not come within {PATIENCE:.0f} s")
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
