"""Redrive: dead letters go back to their topic, once the cause is fixed."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition

from penstock.errors import (
    AuthenticationError,
    AuthorizationError,
    DataError,
    FencedError,
    LogError,
    PenstockError,
)
from penstock.log.broker import Broker
from penstock.log.client import (
    TIMEOUT,
    ErrorListener,
    asking,
    committed,
    configuration,
    explain,
    is_transient,
    patiently,
)
from penstock.log.dead_letters import DeadLetter
from penstock.log.identity import TopicIdentity
from penstock.log.producer import Producer
from penstock.log.topic import DEAD_LETTERS
from penstock.log.transactions import Writer
from penstock.settings import Settings

_CHUNK = 500
_GROUP = "penstock.replay."  # as positions that were committed before have it
_DEMANDED = {"enable.auto.commit": False, "isolation.level": "read_committed", "enable.partition.eof": True}


@dataclass(frozen=True)
class Redriven:
    """How many dead letters went back to their topic, and how many still can't be decoded.

    Duplicates (`repeated`) were left out: another letter is of the same record.
    """

    sent: int
    still_dead: int
    repeated: int = 0


def redrive(
    topic: str,
    settings: Settings,
    *,
    readable: Callable[[bytes | None], object] | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Redriven:
    """Send a topic's dead letters again, each exactly once; of one record that several readers met, one.

    `readable` is the decode function of the topic's codec: a letter that it still refuses goes to the end
    of the dead letters with its new error. Without it every letter is sent. `progress` gets how many of how
    many are done.
    """
    source, group = topic + DEAD_LETTERS, _GROUP + topic
    broker = Broker(settings)
    if not broker.exists(source):
        broker.topic(topic)  # or say that there is none
        return Redriven(0, 0)
    listener = ErrorListener()
    client = confluent_kafka.Consumer(configuration(settings, {"group.id": group}, _DEMANDED, listener))
    writer = Writer(settings, group)
    try:
        writer.fence()  # before the position is read: until then another redrive may move it
        letters = _Letters(client, listener, broker, TopicIdentity(source, settings, group), source)
        return _redriven(letters, writer, readable, progress)
    except PenstockError as error:
        writer.abort()
        if writer.is_fenced and not isinstance(error, AuthenticationError | AuthorizationError):
            raise FencedError(
                f"another redrive of {source!r} has begun, so this one ends",
                hint="the other one deals with the letters that are left",
            ) from error
        raise
    finally:
        writer.abort()
        client.close()


class _Letters:
    """The dead letters that are there when a redrive begins and that none before it has dealt with."""

    def __init__(
        self, client: Any, listener: ErrorListener, broker: Broker, identity: TopicIdentity, source: str
    ) -> None:
        self.source = source
        self.end = broker.committed_end(source)[0]
        self._client, self._listener = client, listener
        self._identity = identity
        with asking(f"read {source!r}", listener):
            place = TopicPartition(source, 0)
            low = client.get_watermark_offsets(place, timeout=TIMEOUT)[0]
            (known,) = patiently(lambda: committed(client, listener, [place]))
            identity.refuse_foreign(known)
            self.start = max(low, known.offset)
            client.assign([TopicPartition(source, 0, self.start)])

    def chunks(self) -> Iterator[tuple[list[Any], int]]:
        """Yield letters with the position after them; control records leave gaps in the offsets."""
        position, heard_at = self.start, time.monotonic()
        while position < self.end:
            with asking(f"read {self.source!r}", self._listener):
                messages = self._client.consume(_CHUNK, timeout=0.2)
            if time.monotonic() - heard_at > TIMEOUT:
                raise LogError(f"nothing came of {self.source!r} in {TIMEOUT:.0f} s", hint="redrive again")
            positions = [each for each in map(self._position_after, messages) if each is not None]
            if positions:
                position, heard_at = min(max(positions), self.end), time.monotonic()
                yield (
                    [each for each in messages if each.error() is None and each.offset() < self.end],
                    position,
                )

    def commit(self, writer: Writer, position: int) -> None:
        with asking(f"commit the redrive of {self.source!r}", self._listener):
            writer.commit([self._identity.position(0, position)], self._client.consumer_group_metadata())

    def _position_after(self, message: Any) -> int | None:
        error = message.error()
        if error is None:
            return int(message.offset()) + 1
        if error.code() == KafkaError._PARTITION_EOF:
            return int(message.offset())
        if is_transient(error):
            return None
        raise explain(f"read {self.source!r}", error, self._listener)


def _redriven(
    letters: _Letters,
    writer: Writer,
    readable: Callable[[bytes | None], object] | None,
    progress: Callable[[int, int], None],
) -> Redriven:
    sent = dead = repeated = 0
    seen: set[tuple[str, int, int]] = set()
    for messages, position in letters.chunks():
        producer = writer.begin()
        for message in messages:
            letter = DeadLetter.from_message(message)
            if letter.origin in seen:
                repeated += 1
                continue
            if letter.origin is not None:
                seen.add(letter.origin)
            alive = _send_again(producer, message, letter, readable)
            sent, dead = sent + alive, dead + (not alive)
        letters.commit(writer, position)
        progress(position - letters.start, letters.end - letters.start)
    return Redriven(sent, dead, repeated)


def _send_again(
    producer: Producer,
    message: Any,
    letter: DeadLetter,
    readable: Callable[[bytes | None], object] | None,
) -> bool:
    try:
        if readable is not None:
            readable(letter.value)
    except DataError as error:
        again = DeadLetter(**{**vars(letter), "error": error.message})
        producer.send_bytes(message.topic(), again.key, again.value, again.to_headers())
        return False
    producer.send_bytes(letter.topic, letter.key, letter.value, list(letter.headers))
    return True
