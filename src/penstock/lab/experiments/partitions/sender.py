"""A sender: number after number with the acks that are wanted; it keeps what was acknowledged."""

import threading
import time

from confluent_kafka import KafkaError, Message, Producer

from penstock.lab.run import Run
from penstock.settings import Settings

_IDLE = 0.01
_FLUSHED = 60.0


class Sender:
    """Sends from its making on, until it is stopped."""

    def __init__(self, run: Run, settings: Settings, topic: str, acks: str) -> None:
        self._run, self._topic = run, topic
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
        self._producer.flush(_FLUSHED)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        if error is None and value is not None:
            with self._lock:
                self._acknowledged.add(int(value))
            self._run.flow([{"acknowledged": int(value)}])
