"""Traffic with keys: so many events a second, some keys more often than others."""

import random
import time
from threading import Event, Lock

from confluent_kafka import KafkaError, Message, Producer

from penstock.lab.run import Run

_IDLE = 0.02
_AT_ONCE = 50


class Traffic:
    """Sends events, and learns from their acknowledgements to which partition each key goes."""

    def __init__(self, run: Run, topic: str) -> None:
        self._run, self._topic = run, topic
        self._lock = Lock()
        self._random = random.Random(3)  # noqa: S311
        self._partitions: dict[str, int] = {}
        self.sent = 0
        # The partitioner of Kafka's own clients: the hash of the key decides, and nothing else.
        own = {"partitioner": "murmur2_random", "linger.ms": 5, "log_level": 0}
        self._producer = Producer(run.settings.client() | own)

    def work(self, stopped: Event) -> None:
        """Send at the rate that the slider has."""
        due = time.monotonic()
        while not stopped.wait(_IDLE):
            rate, now = self._run.value("rate"), time.monotonic()
            due = max(due, now - 1) if rate else now
            for _ in range(_AT_ONCE):
                if due > now or not rate:
                    break
                due += 1 / rate
                self._producer.produce(
                    self._topic, str(time.time()), self._key(), on_delivery=self._acknowledged
                )
            self._producer.poll(0)
        self._producer.flush(10)

    def partition_of(self) -> dict[str, int]:
        """Return the partition that each key was seen to go to."""
        with self._lock:
            return dict(self._partitions)

    def _key(self) -> str:
        """A key: with skew 0 all are alike, with 1 the second comes half as often as the first, and so on."""
        count, skew = int(self._run.value("keys")), self._run.value("skew")
        weights = [1 / (place**skew) for place in range(1, count + 1)]
        return f"user-{self._random.choices(range(count), weights)[0]}"

    def _acknowledged(self, error: KafkaError | None, message: Message) -> None:
        key, partition = message.key(), message.partition()
        if error is not None or key is None or partition is None:
            return
        name = key.decode() if isinstance(key, bytes) else key
        with self._lock:
            self._partitions[name] = partition
            self.sent += 1
        self._run.flow([{"in": partition, "key": name}])
