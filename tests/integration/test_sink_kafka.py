"""The Kafka sink passes the contract of all sinks, and freezes its lanes."""

from dataclasses import replace

import confluent_kafka
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from penstock.errors import SinkError
from penstock.identity import Identity
from penstock.log import Broker
from penstock.log.ledger import Batch, Entry
from penstock.targets import KafkaSink, SinkOptions
from penstock.targets.kafka.lane import KafkaLane, KafkaLanes
from penstock.testing.lane_contract import LaneContract
from penstock.testing.sink_contract import ExactlyOnceContract, batch, numbered

HEADERS = "array(named_struct('key', 'n', 'value', cast(string(id) as binary)))"


def kafka_rows(spark, numbers, topic):
    frame = numbered(spark, numbers)
    text = F.col("id").cast("string").cast("binary")
    return frame.select(
        F.lit(topic).alias("topic"), text.alias("key"), text.alias("value"), F.expr(HEADERS).alias("headers")
    )


def read(settings, topic, isolation="read_committed"):
    """The values in a topic, as a reader of committed events sees them, in the order of each partition."""
    kafka = settings.client() | {
        "group.id": "test",
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    client = confluent_kafka.Consumer(kafka)
    parts = range(Broker(settings).topic(topic).partitions)
    client.assign([confluent_kafka.TopicPartition(topic, part, 0) for part in parts])
    found, ended = [], 0
    while ended < len(parts):
        message = client.poll(10)
        assert message is not None
        if message.error():
            ended += 1
        else:
            found.append(message)
    client.close()
    return found


class TestKafkaSink(ExactlyOnceContract):
    opening = ("sink.kafka.opened",)
    writing = ("sink.kafka.written",)

    def make_sink(self, spark, settings, unique, **options):
        self.settings, self.topic = settings, f"sink.{unique}"
        Broker(settings).ensure(self.topic, 3, {})
        return KafkaSink(SinkOptions(settings, unique, **options))

    def rows(self, spark, numbers):
        return kafka_rows(spark, numbers, self.topic)

    def contents(self, sink):
        return [int(message.value()) for message in read(self.settings, self.topic)]

    def test_lanes_are_frozen(self, anew, put, spark, settings, unique):
        put(anew(lanes=3), batch(0, 0, 10))
        sink = anew(lanes=5)
        assert sink.lanes == 3
        put(sink, batch(0, 0, 10))
        put(sink, batch(1, 10, 20))
        assert self.holds(sink, range(20))

    def test_what_one_lane_has_written_is_not_written_again(self, anew, put, settings, unique):
        """The process died between the commits of its two lanes."""
        sink = anew()
        put(sink, batch(0, 0, 10))
        half = KafkaLane(settings, unique, 0, 60_000)
        half.send([(self.topic, b"k", b"99", [])], Entry(1, batch(1, 10, 20)))
        put(anew(), batch(1, 10, 20))
        found = sorted(self.contents(sink))
        assert found[:10] == list(range(10))
        assert 99 in found
        assert len(found) < 21

    def test_an_open_transaction_of_a_dead_writer_is_ended(self, anew, put, settings, unique):
        """It would keep readers of committed events waiting until its time is up."""
        sink = anew()
        dead = KafkaLane(settings, unique, 0, 60_000)
        dead._writer.client.begin_transaction()
        dead._writer.client.produce(self.topic, b"99", b"k")
        dead._writer.client.flush(10)
        put(anew(), batch(0, 0, 10))
        assert self.holds(sink, range(10))

    def test_a_writer_that_was_broken_into_tries_again(self, anew, settings, unique):
        anew()
        lane = KafkaLane(settings, unique, 0, 60_000)
        KafkaLane(settings, unique, 0, 60_000)
        with pytest.raises(SinkError, match="broken in"):
            lane.send([(self.topic, b"k", b"1", [])], Entry(1, batch(0, 0, 1)))

    def test_headers_and_keys_arrive(self, anew, put, settings):
        put(anew(), batch(0, 0, 3))
        found = {message.value(): message for message in read(settings, self.topic)}
        assert found[b"2"].key() == b"2"
        assert found[b"2"].headers() == [("n", b"2")]

    def test_results_of_a_key_keep_their_order(self, anew, spark, settings):
        frame = spark.range(2000, numPartitions=1).select(
            F.lit(self.topic_of(anew)).alias("topic"),
            (F.col("id") % 5).cast("string").cast("binary").alias("key"),
            F.col("id").cast("string").cast("binary").alias("value"),
            F.expr("cast(array() as array<struct<key string, value binary>>)").alias("headers"),
        )
        anew().write(frame, Batch("first", 0, {}, {}))
        seen = {}
        for message in read(settings, self.topic):
            assert seen.get(message.key(), -1) < int(message.value())
            seen[message.key()] = int(message.value())

    def topic_of(self, anew):
        anew()
        return self.topic


class TestKafkaLanes(LaneContract):
    def make_lanes(self, settings, unique):
        self.settings, self.topic = settings, f"lane.{unique}"
        Broker(settings).ensure(self.topic, 1, {})
        return KafkaLanes(settings.client(), unique, 60_000)

    def batch(self, numbers):
        values = [str(number).encode() for number in numbers]
        kind = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
        headers = pa.array([[]] * len(values), kind)
        return pa.RecordBatch.from_pydict(
            {"topic": [self.topic] * len(values), "key": values, "value": values, "headers": headers}
        )

    def contents(self):
        return [int(message.value()) for message in read(self.settings, self.topic)]


def test_a_lane_waits_where_the_queue_is_full(settings, unique):
    Broker(settings).ensure(f"full.{unique}", 1, {})
    Broker(settings).ensure(Identity(unique).ledger, 1, {})
    narrow = replace(settings, kafka={**settings.kafka, "queue.buffering.max.messages": "10"})
    rows = [(f"full.{unique}", None, str(number).encode(), None) for number in range(50)]
    assert KafkaLane(narrow, unique, 0, 60_000).send(rows, Entry(1, batch(0, 0, 50))) == 50
    assert len(read(settings, f"full.{unique}")) == 50
