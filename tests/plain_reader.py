"""What a plain client of Kafka sees of an experiment: its events, and what it has left behind."""

import json
import time
from collections.abc import Iterator

import confluent_kafka
from confluent_kafka.admin import AdminClient

from penstock.documents import JsonObject
from penstock.settings import Settings


def left_behind(settings: Settings, run: str) -> list[str]:
    """Return the topics and groups whose names have the id of a run in them."""
    admin = AdminClient(settings.client())
    groups = admin.list_consumer_groups().result(20).valid
    names = [*admin.list_topics(timeout=20).topics, *(each.group_id for each in groups)]
    return [each for each in names if run in each]


def plainly_read(settings: Settings, topic: str) -> list[JsonObject]:
    """Return all committed events of a topic, as Kafka's own client sees them."""
    wanted = {"group.id": "plain", "enable.partition.eof": True, "isolation.level": "read_committed"}
    client = confluent_kafka.Consumer(settings.client() | wanted)
    try:
        partitions = client.list_topics(topic, timeout=20).topics[topic].partitions
        places = [confluent_kafka.TopicPartition(topic, each, 0) for each in partitions]
        ends = {each.partition: client.get_watermark_offsets(each, timeout=20)[1] for each in places}
        client.assign(places)
        return [*_events(client, ends)]
    finally:
        client.close()


def _events(client: confluent_kafka.Consumer, ends: dict[int, int]) -> Iterator[JsonObject]:
    """Read up to what was there: a partition that is written has no end, one of transactions ends before."""
    deadline, left = time.monotonic() + 20, {each for each, end in ends.items() if end}
    while left:
        assert time.monotonic() < deadline, left
        message = client.poll(1)
        if message is None:
            continue
        partition = message.partition()
        if message.error() is not None:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            left.discard(partition)
            continue
        if message.offset() + 1 >= ends[partition]:
            left.discard(partition)
        if message.value() is not None:
            yield json.loads(message.value())
