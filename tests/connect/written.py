"""What a connector has written: the records of all topics below a prefix, decoded from JSON."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.settings import Settings

_READING = {"enable.auto.commit": "false", "enable.partition.eof": "true"}


@dataclass(frozen=True)
class Written:
    """One record; a key or value of None is none at all, a tombstone's value for example."""

    topic: str
    key: object
    value: object
    headers: dict[str, str]


def read(settings: Settings, prefix: str) -> list[Written]:
    """Return all that is in the topics `<prefix>.…` now, topic after topic, each in its order."""
    kafka = settings.client()
    known = AdminClient(kafka).list_topics(timeout=10).topics
    names = sorted(name for name in known if name.startswith(f"{prefix}."))
    wanted = [TopicPartition(name, number, 0) for name in names for number in known[name].partitions]
    reader = Consumer(kafka | _READING | {"group.id": prefix})
    try:
        found = [_written(message) for message in _to_the_end(reader, wanted)]
    finally:
        reader.close()
    return sorted(found, key=lambda one: one.topic)


def read_until(
    settings: Settings, prefix: str, whole: Callable[[list[Written]], bool], patience: float = 60
) -> list[Written]:
    """Read again and again until `whole` says that all is there."""
    deadline = time.monotonic() + patience
    while not whole(found := read(settings, prefix)):
        if time.monotonic() > deadline:
            shown = "\n".join(str(one) for one in found[-3:])
            raise AssertionError(f"only {len(found)} records after {patience:.0f} s, the last:\n{shown}")
        time.sleep(0.2)
    return found


def _to_the_end(reader: Consumer, wanted: Sequence[TopicPartition]) -> Iterator[Message]:
    """Read partitions to the ends that they have by then."""
    reader.assign(list(wanted))
    ended = 0
    while ended < len(wanted):
        message = reader.poll(10)
        if message is None:
            raise AssertionError(f"{len(wanted) - ended} partitions did not end within 10 s")
        if not message.error():
            yield message
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ended += 1
        else:
            raise AssertionError(message.error().str())


def _written(message: Message) -> Written:
    headers = {name: value.decode() for name, value in message.headers() or ()}
    return Written(message.topic(), _decoded(message.key()), _decoded(message.value()), headers)


def _decoded(text: bytes | None) -> object:
    return None if text is None else json.loads(text)
