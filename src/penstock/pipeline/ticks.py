"""The topic of a flow's clock: ticks are written, and the last one of a checkpoint can be found."""

import time
from collections.abc import Mapping
from typing import Any

import confluent_kafka
import msgspec
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.log import Broker
from penstock.log.access import is_denied
from penstock.log.client import TIMEOUT, ErrorListener, asking, configuration, explain, is_transient
from penstock.log.ledger import Offsets
from penstock.process.wire.source import kafka_rows
from penstock.settings import Settings

_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)}
_TICK = "generation string, time long, clock boolean"
_TAIL = 50  # ticks among which the last one of a checkpoint is looked for before all are


class Ticks:
    """Writes and finds ticks; each holds all that those before it held, so that the last one is enough."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self.topic = topic
        self.position: Mapping[str, Any] = {}  # up to where the last one speaks
        self._settings = settings
        self._listener = ErrorListener()
        self._producer: confluent_kafka.Producer | None = None

    def prepare(self) -> None:
        """Make the topic unless it is there."""
        Broker(self._settings).ensure(self.topic, 1, _CONFIG)

    def end(self) -> int:
        """The offset that the next tick gets."""
        return Broker(self._settings).end(self.topic, 0)

    def write(self, tick: Mapping[str, Any]) -> bool:
        """Write a tick; False if the broker did not take it, and the next one has to say it."""
        what = f"write to {self.topic!r}"
        failed: list[KafkaError] = []
        if self._producer is None:
            self._producer = confluent_kafka.Producer(configuration(self._settings, {}, {}, self._listener))
        with asking(what, self._listener):
            self._producer.produce(
                self.topic,
                msgspec.json.encode(tick),
                str(tick["generation"]).encode(),
                on_delivery=lambda error, _: failed.append(error) if error is not None else None,
            )
            waiting = self._producer.flush(TIMEOUT)
        if failed and is_denied(failed[0]):
            raise explain(what, failed[0], self._listener)
        if waiting or failed:
            return False
        self.position = {topic: dict(each) for topic, each in tick["position"].items()}
        return True

    def stream(self, spark: SparkSession, generation: str, start: Offsets | None) -> DataFrame:
        """Return the ticks of a checkpoint as a stream of `time` and `clock`."""
        own = {topic: place for topic, place in (start or {}).items() if topic == self.topic}
        lost = {"failOnDataLoss": "false"}  # each tick holds what those before it held
        rows = kafka_rows(spark, self._settings, [self.topic], streaming=True, start=own, options=lost)
        tick = rows.select(F.from_json(F.col("value").cast("string"), _TICK).alias("tick")).select("tick.*")
        wanted = tick.where((F.col("generation") == generation) & F.col("time").isNotNull())
        return wanted.select(F.timestamp_micros("time").alias("time"), "clock")

    def last(self, generation: str | None = None) -> dict[str, Any] | None:
        """Return the last tick of a checkpoint, or of all."""
        first, end = Broker(self._settings).offsets(self.topic)[0]
        near = max(first, end - _TAIL)
        found = self._between(near, end, generation)
        return self._between(first, near, generation) if found is None and near > first else found

    def close(self) -> None:
        """Let go of the broker."""
        if self._producer is not None:
            self._producer.flush(5)

    def _between(self, start: int, end: int, generation: str | None) -> dict[str, Any] | None:
        demanded = {
            "group.id": "penstock.clock",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
        listener = ErrorListener()
        client = confluent_kafka.Consumer(configuration(self._settings, {}, demanded, listener))
        try:
            with asking(f"read {self.topic!r}", listener):
                client.assign([TopicPartition(self.topic, 0, start)])
                return _last(client, end, generation)
        finally:
            client.close()


def _last(client: Any, end: int, generation: str | None) -> dict[str, Any] | None:
    last, deadline = None, time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        message = client.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:
            if message.error().code() == KafkaError._PARTITION_EOF:
                return last
            if not is_transient(message.error()):
                raise KafkaException(message.error())
            continue
        if message.offset() >= end:
            return last
        tick = msgspec.json.decode(message.value())
        last = tick if generation in (None, tick.get("generation")) else last
    raise TimeoutError
