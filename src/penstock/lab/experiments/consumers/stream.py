"""The stream: a million events at the start, then live ones at a rate, by one producer."""

import threading
import time
from datetime import UTC, datetime

from penstock.errors import PenstockError
from penstock.lab.experiments.consumers.reading import Reading, readings, send_many
from penstock.lab.run import Run
from penstock.log import Producer, Topic

_TICK, _PATIENCE = 0.02, 20.0  # seconds
_SHOWN = 25  # live events a second that the picture draws


class Stream:
    """Sends in a thread of its own; `sent` counts, and what went wrong is raised by `check`."""

    def __init__(self, run: Run, count: int) -> None:
        self.topic: Topic[Reading] = readings(run.name("readings"))
        run.topics(self.topic)
        self.sent, self.count = 0, count
        self._run = run
        self._error: PenstockError | None = None
        self._producer: Producer | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, name="lab-stream", daemon=True)
        self._thread.start()
        run.cleanup.callback(self.close)

    @property
    def is_loaded(self) -> bool:
        """Whether the events of the start are all sent."""
        return self.sent >= self.count

    @property
    def end(self) -> int:
        """The offset after the last event that was acknowledged."""
        return max(0, self.sent - (len(self._producer.client) if self._producer else 0))

    def check(self) -> None:
        """Raise what went wrong."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End, and wait for that a while."""
        self._over.set()
        self._thread.join(_PATIENCE)

    def _send(self) -> None:
        try:
            with self._run.producer() as producer:
                self._producer = producer
                for sent in send_many(producer, self.topic, self.count):
                    self.sent = sent
                    if self._over.is_set():
                        return
                producer.flush()
                self._go_on(producer)
        except PenstockError as error:
            self._error = error

    def _go_on(self, producer: Producer) -> None:
        """Send live events, as many as are due; what is drawn is a part of them."""
        due, drawn = 0.0, time.monotonic()
        while not self._over.wait(_TICK):
            due += float(self._run.value("rate")) * _TICK
            for _ in range(int(due)):
                event = Reading(f"sensor-{self.sent % 100}", self.sent / 4, datetime.now(UTC))
                producer.send(self.topic, event)
                if time.monotonic() - drawn > 1 / _SHOWN:
                    drawn = time.monotonic()
                    self._run.flow([{"kind": "live", "offset": self.sent}])
                self.sent += 1
            due -= int(due)
            producer.client.poll(0)
