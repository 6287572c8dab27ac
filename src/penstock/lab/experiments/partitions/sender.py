"""A sender: number after number with the acks that are wanted; it keeps what was acknowledged."""

import threading
import time

from confluent_kafka import KafkaError, Message, Producer

from penstock.errors import LogError
from penstock.lab.run import Run
from penstock.settings import Settings

MARKER = -1
_IDLE, _TICK = 0.01, 0.2
_FLUSHED = 60.0


class Sender:
    """Sends from its making on, until it is stopped."""

    def __init__(self, run: Run, settings: Settings, topic: str, acks: str) -> None:
        self._run, self._settings, self._topic = run, settings, topic
        self._lock = threading.Lock()
        self._acknowledged: set[int] = set()
        self.sent = 0
        self._stopped = threading.Event()
        own = {
            "acks": acks,
            "enable.idempotence": acks == "all",
            "linger.ms": 2,
            "message.timeout.ms": 120_000,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 1000,
            "log_level": 0,
        }
        self._producer = Producer(settings.client() | own)
        self._thread = threading.Thread(target=self._work, name="lab-sender", daemon=True)
        self._thread.start()

    @property
    def acknowledged(self) -> set[int]:
        with self._lock:
            return set(self._acknowledged)

    @property
    def count(self) -> int:
        return len(self._acknowledged)

    def stop(self) -> None:
        """Send no more, and wait for the last acknowledgements."""
        self._stopped.set()
        self._thread.join(_FLUSHED)

    def mark(self) -> None:
        """Write a marker that all in-sync replicas have: everything before it can be read then."""
        producer = Producer(self._settings.client() | {"acks": "all", "log_level": 0})
        failures: list[KafkaError] = []
        producer.produce(
            self._topic, str(MARKER), partition=0, on_delivery=lambda error, _: failures.extend(_some(error))
        )
        deadline = time.monotonic() + _FLUSHED
        while producer.flush(_TICK) and time.monotonic() < deadline:
            self._run.rest(0)
        if len(producer) or failures:
            raise LogError(
                f"the replicas of {self._topic!r} did not take a marker: {failures}", hint="start it again"
            )

    def _flush(self) -> None:
        """Wait for acknowledgements, unless the run is over."""
        deadline = time.monotonic() + _FLUSHED
        while self._producer.flush(_TICK) and time.monotonic() < deadline:
            if self._run.is_over:
                self._producer.purge()

    def _work(self) -> None:
        due = time.monotonic()
        while not self._stopped.wait(_IDLE):
            now = time.monotonic()
            due = max(due, now - 0.5)
            while due <= now:
                due += 1 / self._run.value("rate")
                self._producer.produce(self._topic, str(self.sent), on_delivery=self._delivered)
                self.sent += 1
            self._producer.poll(0)
        self._flush()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        if error is None and value is not None:
            with self._lock:
                self._acknowledged.add(int(value))
            self._run.flow([{"acknowledged": int(value)}])


def _some(error: KafkaError | None) -> list[KafkaError]:
    return [] if error is None else [error]
