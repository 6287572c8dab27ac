"""Sending dead letters again, once the cause is fixed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition

from penstock.errors import DataError
from penstock.log.broker import Broker
from penstock.log.client import TIMEOUT, Ear, asking, configuration
from penstock.log.dead_letters import DeadLetter
from penstock.log.producer import Producer
from penstock.log.topic import DEAD_LETTERS
from penstock.log.transactions import Writer
from penstock.settings import Settings

_CHUNK = 500


@dataclass(frozen=True)
class Replayed:
    """How many dead letters went back to their topic, and how many still can't be read."""

    sent: int
    still_dead: int


def replay_dead(
    topic: str,
    settings: Settings,
    *,
    readable: Callable[[bytes | None], object] | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Replayed:
    """Send a topic's dead letters again, each exactly once.

    `readable` is the decode function of the topic's codec: a letter that it still refuses goes to the end
    of the dead letters with its new error. Without it every letter is sent. `progress` is told how many of
    how many are done.
    """
    source = topic + DEAD_LETTERS
    if source not in Broker(settings).topics([source]):
        return Replayed(0, 0)
    group = f"penstock.replay.{topic}"
    own = {"group.id": group, "isolation.level": "read_committed"}
    client = confluent_kafka.Consumer(configuration(settings, own, {"enable.auto.commit": False}, Ear()))
    writer = Writer(settings, group)
    try:
        return _replay(client, writer, source, readable, progress)
    finally:
        writer.abort()
        client.close()


def _replay(
    client: Any,
    writer: Writer,
    source: str,
    readable: Callable[[bytes | None], object] | None,
    progress: Callable[[int, int], None],
) -> Replayed:
    place = TopicPartition(source, 0)
    with asking(f"read {source!r}"):
        low, end = client.get_watermark_offsets(place, timeout=TIMEOUT)
        committed = client.committed([place], timeout=TIMEOUT)[0].offset
    start = max(low, committed)
    sent = dead = 0
    for messages, position in _chunks(client, source, start, end):
        producer = writer.begin()
        for message in messages:
            alive = _send_again(producer, message, readable)
            sent, dead = sent + alive, dead + (not alive)
        with asking("commit the replay"):
            writer.commit([TopicPartition(source, 0, position)], client.consumer_group_metadata())
        progress(position - start, end - start)
    return Replayed(sent, dead)


def _chunks(client: Any, source: str, start: int, end: int) -> Iterator[tuple[list[Any], int]]:
    """Yield messages below `end` with the position after them; control records leave gaps in the offsets."""
    client.assign([TopicPartition(source, 0, start)])
    position = start
    while position < end:
        with asking(f"read {source!r}"):
            messages = client.consume(_CHUNK, timeout=1.0)
        good = [message for message in messages if message.error() is None and message.offset() < end]
        if not messages:
            return
        position = messages[-1].offset() + 1
        yield good, min(position, end)


def _send_again(producer: Producer, message: Any, readable: Callable[[bytes | None], object] | None) -> bool:
    letter = DeadLetter.from_message(message)
    try:
        if readable is not None:
            readable(letter.value)
    except DataError as error:
        again = DeadLetter(**{**vars(letter), "error": error.message})
        producer.send_bytes(message.topic(), again.key, again.value, again.to_headers())
        return False
    producer.send_bytes(letter.topic, letter.key, letter.value, list(letter.headers))
    return True
