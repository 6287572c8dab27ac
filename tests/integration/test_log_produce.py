"""Producing to a real broker: keys, spreading, full buffers and failures that are reported."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from penstock.errors import BufferFullError, ConfigurationError, DeliveryError, TopicError
from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Table, Topic, apply

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Hit(Event):
    user: str | None
    number: int
    at: datetime


@dataclass(frozen=True)
class Other(Event):
    at: datetime


def hits(count, users=7):
    return [Hit(f"u{number % users}", number, NOW) for number in range(count)]


def read(topic, settings):
    with Consumer(topic, settings) as consumer:
        return list(consumer.records(idle="1 second"))


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_events_of_a_key_keep_their_order(settings, unique, acks):
    topic = Topic(unique, Hit, key="user", partitions=3)
    apply([topic], Broker(settings))
    sent = hits(500)
    with Producer(settings, acks=acks) as producer:
        assert producer.send_all(topic, sent) == 500
    records = read(topic, settings)
    assert sorted((record.event for record in records), key=lambda event: event.number) == sent
    for user in {event.user for event in sent}:
        mine = [record for record in records if record.event.user == user]
        assert len({record.partition for record in mine}) == 1
        assert [record.event.number for record in mine] == sorted(record.event.number for record in mine)
        assert {record.key for record in mine} == {user.encode()}


def test_without_a_key_events_are_spread_evenly(settings, unique):
    topic = Topic(unique, Hit, partitions=4)
    apply([topic], Broker(settings))
    with Producer(settings) as producer:
        producer.send_all(topic, hits(400))
    assert Counter(record.partition for record in read(topic, settings)) == dict.fromkeys(range(4), 100)


def test_a_table_takes_tombstones(settings, unique):
    table = Table(unique, Hit, key="user")
    apply([table], Broker(settings))
    with Producer(settings) as producer:
        producer.send(table, Hit("u1", 1, NOW))
        producer.delete(table, "u1")
        with pytest.raises(TopicError, match="is None"):
            producer.send(table, Hit(None, 1, NOW))
    assert [(record.key, record.event and record.event.number) for record in read(table, settings)] == [
        (b"u1", 1),
        (b"u1", None),
    ]


def test_headers_and_partition_reach_the_log(settings, unique):
    topic = Topic(unique, Hit, key="user", partitions=2)
    apply([topic], Broker(settings))
    with Producer(settings) as producer:
        producer.send(topic, hits(1)[0], headers=[("trace", b"t1")], partition=1)
    (record,) = read(topic, settings)
    assert (record.partition, record.headers) == (1, [("trace", b"t1")])


def test_an_event_of_another_class_is_refused(settings, unique):
    with Producer(settings) as producer, pytest.raises(TopicError, match="takes Hit, got a Other"):
        producer.send(Topic(unique, Hit), Other(NOW))


def test_a_missing_topic_is_reported(settings, unique):
    with Producer(settings) as producer, pytest.raises(TopicError, match="does not exist"):
        producer.send(Topic(unique, Hit), hits(1)[0])


def dead_broker(settings):
    return settings.with_kafka(bootstrap_servers="127.0.0.1:1")


SMALL = {"queue.buffering.max.messages": 10, "message.timeout.ms": 500}


def test_delivery_errors_are_raised_with_the_events(settings, unique):
    topic = Topic(unique, Hit, key="user")
    producer = Producer(dead_broker(settings), kafka=SMALL)
    for hit in hits(5):
        producer.send(topic, hit)
    with pytest.raises(DeliveryError, match="5 events were not acknowledged") as caught:
        producer.flush("10 seconds")
    assert [topic.codec().decode(failure.value).number for failure in caught.value.failures] == [
        0,
        1,
        2,
        3,
        4,
    ]
    producer.flush("1 second")  # reported once


def test_leaving_the_block_raises_what_failed(settings, unique):
    topic = Topic(unique, Hit, key="user")
    with pytest.raises(DeliveryError), Producer(dead_broker(settings), kafka=SMALL) as producer:
        producer.send(topic, hits(1)[0])


def test_a_full_buffer_raises_drops_or_blocks_as_declared(settings, unique):
    topic = Topic(unique, Hit, key="user")
    patient = SMALL | {"message.timeout.ms": 60_000}
    raising = Producer(dead_broker(settings), when_full="raise", kafka=patient)
    with pytest.raises(BufferFullError, match="10 events wait"):
        raising.send_all(topic, hits(11))
    dropping = Producer(dead_broker(settings), when_full="drop", kafka=patient)
    assert dropping.send_all(topic, hits(15)) == 10
    assert (dropping.sent, dropping.dropped) == (10, 5)
    for producer in (raising, dropping):
        producer.client.purge()

    apply([topic], Broker(settings))
    with Producer(settings, kafka={"queue.buffering.max.messages": 10}) as blocking:
        assert blocking.send_all(topic, hits(300)) == 300
    assert len(read(topic, settings)) == 300


@pytest.mark.parametrize("wrong", [{"acks": "2"}, {"when_full": "explode"}])
def test_a_wrong_policy_is_refused(settings, wrong):
    with pytest.raises(ConfigurationError, match="expected"):
        Producer(settings, **wrong)
