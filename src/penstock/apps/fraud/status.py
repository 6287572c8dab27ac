"""What a run is doing at this moment: its stage, and the figures of the last seconds."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.apps.demo.latency import percentile
from penstock.apps.demo.status import RunStatus

if TYPE_CHECKING:
    from penstock.apps.fraud.listener import Listener
    from penstock.apps.fraud.traffic import Traffic

STAGES = {
    "services": "services",
    "model": "train the model",
    "start": "start the flows on Spark",
    "steady": "judge transactions",
    "kill": "kill -9, and recover",
    "check": "check every alert",
    "stop": "stop everything",
}
_RATE_OVER = 3.0  # seconds
_LATENCY_OVER = 10.0
_REMEMBERED = 30  # figures of the past, one each second
_LATEST = 5  # alerts that are shown


@dataclass(frozen=True)
class Figures:
    """What has come and gone so far, and how fast just now; percentiles are in milliseconds."""

    sent: int = 0
    sent_rate: float = 0.0
    alerts: int = 0
    alert_rate: float = 0.0
    re_emitted: int = 0
    p50: float | None = None
    p99: float | None = None


class Status(RunStatus):
    """A run of the fraud application, and what has come and gone in it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(STAGES, clock)
        self.checked = self.to_check = 0  # transactions
        self.checkpoints = 0
        self.past: deque[Figures] = deque(maxlen=_REMEMBERED)
        self._samples: deque[tuple[float, int, int]] = deque([(self._began, 0, 0)])
        self._noted = self._began
        self._traffic: Traffic | None = None
        self._listener: Listener | None = None
        self._count_checkpoints: Callable[[], int] = int

    def watch(self, traffic: "Traffic", listener: "Listener", checkpoints: Callable[[], int]) -> None:
        """Take the figures from these, from now on."""
        self._traffic, self._listener, self._count_checkpoints = traffic, listener, checkpoints

    @property
    def latest(self) -> list[tuple[str, str, int, float]]:
        """The last alerts: card, reason, how many transactions are its evidence, and the milliseconds."""
        recent = [] if self._listener is None else list(self._listener.recent)[-_LATEST:]
        return [(alert.card, alert.reason, len(alert.evidence), 1000 * took) for _, took, alert in recent]

    def sample(self) -> Figures:
        """Take the figures as they are now; one each second is remembered."""
        now, found = self._clock(), Figures()
        if self._traffic is not None and self._listener is not None:
            found = self._measured(now, self._traffic.sent, self._listener)
        if now - self._noted >= 1:
            self._noted = now
            self.past.append(found)
            self.checkpoints = self._count_checkpoints()
        return found

    def _measured(self, now: float, sent: int, listener: "Listener") -> Figures:
        alerts, since = listener.new, time.time() - _LATENCY_OVER
        sent_rate, alert_rate = self._rates(now, sent, alerts)
        took = [seconds for heard, seconds, _ in list(listener.recent) if heard > since]
        p50, p99 = percentile(took, 0.5), percentile(took, 0.99)
        return Figures(sent, sent_rate, alerts, alert_rate, listener.heard - alerts, p50, p99)

    def _rates(self, now: float, sent: int, alerts: int) -> tuple[float, float]:
        self._samples.append((now, sent, alerts))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _RATE_OVER:
            self._samples.popleft()
        then, sent_then, alerts_then = self._samples[0]
        seconds = max(now - then, 0.001)
        return (sent - sent_then) / seconds, (alerts - alerts_then) / seconds
