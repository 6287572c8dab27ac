"""The topic of a flow's clock: ticks are written, and the last one of a checkpoint can be found."""

import confluent_kafka
import msgspec
from confluent_kafka import KafkaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.documents import JsonObject
from penstock.log import Broker
from penstock.log.access import is_denied
from penstock.log.client import TIMEOUT, ErrorListener, asking, configuration, explain
from penstock.log.cursor import Cursor
from penstock.log.last_record import last_message
from penstock.log.ledger import Offsets
from penstock.log.message import Received
from penstock.process.wire.source import kafka_rows
from penstock.settings import Settings

_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)}
_TICK = "generation string, time long, clock boolean"


class Ticks:
    """Writes and finds ticks; each holds all that those before it held, so that the last one is enough."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self.topic = topic
        self.position: Offsets = {}  # up to where the last one speaks
        self._settings = settings
        self._listener = ErrorListener()
        self._producer: confluent_kafka.Producer | None = None

    def prepare(self) -> None:
        """Make the topic unless it is there."""
        Broker(self._settings).ensure(self.topic, 1, _CONFIG)

    def end(self) -> int:
        """The offset that the next tick gets."""
        return Broker(self._settings).end(self.topic, 0)

    def write(self, tick: JsonObject) -> bool:
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

    def last(self, generation: str | None = None) -> JsonObject | None:
        """Return the last tick of a checkpoint, or of all."""

        def is_wanted(message: Received) -> bool:
            return generation in (None, _tick(message).get("generation"))

        with Cursor(self.topic, self._settings, [0]) as cursor:
            found = last_message(cursor, 0, cursor.ends()[0], is_wanted)
        return None if found is None else _tick(found)

    def close(self) -> None:
        """Let go of the broker."""
        if self._producer is not None:
            self._producer.flush(5)


def _tick(message: Received) -> JsonObject:
    found: JsonObject = msgspec.json.decode(message.value() or b"")
    return found
