"""Sends numbered events at a rate that may be changed; now and then one comes twice."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.lab.background import Background
from penstock.lab.experiments.recovery.pipelines import Reading
from penstock.log import Producer, Topic

if TYPE_CHECKING:
    from penstock.lab.run import Run

_GROUPS, _KEYS, _TICK = "abcd", 8, 0.02


class Sender:
    """`sent` counts events; with `repeats`, one of so many is sent twice, under the same id."""

    def __init__(
        self, run: "Run", topic: Topic[Reading], rate: Callable[[], float], repeats: int | None
    ) -> None:
        self.sent = 0
        self._run, self._topic, self._rate, self._repeats = run, topic, rate, repeats
        self.background = Background(run, "sender", self._send)

    def _send(self, me: Background) -> None:
        with self._run.producer() as producer:
            due, last = 0.0, time.monotonic()
            while not me.is_closing:
                now = time.monotonic()
                due, last = due + self._rate() * min(now - last, 1.0), now
                while due >= 1:
                    due -= 1
                    self._send_next(producer)
                me.rest(_TICK)

    def _send_next(self, producer: Producer) -> None:
        n = self.sent
        key = f"{_GROUPS[n % len(_GROUPS)]}{n // len(_GROUPS) % _KEYS}"
        event = Reading(n, key, datetime.now(UTC), id=f"event-{n}")
        for _ in range(2 if self._repeats and n % self._repeats == 0 else 1):
            producer.send(self._topic, event)
        self.sent += 1
