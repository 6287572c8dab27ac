"""Hears every alert as it comes, and notes how long it took."""

import threading
import time
from collections import deque
from types import TracebackType
from typing import Self

from penstock.apps.fraud.events import Alert, alerts
from penstock.log import Consumer
from penstock.settings import Settings

_PROMPT = 0.5  # seconds: an alert that took no longer has not waited for the flow
_SILENT = 10.0  # seconds without an alert after which a flow may be gone
_RECENT = 1_000  # alerts


def flow_of(alert: Alert) -> str:
    """Which flow has emitted it."""
    return "taken_over" if alert.reason == "taken-over" else "suspicious"


class Listener:
    """Reads the alerts in a thread of its own; `alerts` has each once, with when it was heard.

    `recent` has the last new ones, with when each was heard and how many seconds it took.
    """

    def __init__(self, settings: Settings) -> None:
        self.alerts: dict[str, tuple[float, Alert]] = {}
        self.recent: deque[tuple[float, float, Alert]] = deque(maxlen=_RECENT)
        self.heard = 0
        self._last: dict[str, tuple[float, float]] = {}  # of each flow: when it was heard, how long it took
        self._since = float("inf")
        self._over = threading.Event()
        self._settings = settings
        self._thread = threading.Thread(target=self._listen, name="alerts", daemon=True)

    @property
    def new(self) -> int:
        """How many different alerts were heard."""
        return len(self.alerts)

    @property
    def hears_both(self) -> bool:
        """Whether both flows have emitted something."""
        return len(self._last) == 2

    @property
    def up_to_date(self) -> bool:
        """Whether both flows have just emitted something, without delay."""
        oldest = time.time() - _SILENT
        prompt = [heard > oldest and took < _PROMPT for heard, took in list(self._last.values())]
        return self.hears_both and all(prompt)

    def keeps_up(self, seconds: float) -> bool:
        """Whether it has been up to date for so many seconds, whenever it was asked."""
        now = time.time()
        self._since = min(self._since, now) if self.up_to_date else float("inf")
        return now - self._since > seconds

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _listen(self) -> None:
        with Consumer(alerts, self._settings) as consumer:
            while not self._over.is_set():
                for record in consumer.records(idle="100 ms"):
                    if record.event is not None:
                        self._hear(record.event)

    def _hear(self, alert: Alert) -> None:
        now = time.time()
        took = now - alert.at.timestamp()
        self.heard += 1
        if alert.id not in self.alerts:
            self.alerts[alert.id] = now, alert
            self.recent.append((now, took, alert))
        self._last[flow_of(alert)] = now, took
