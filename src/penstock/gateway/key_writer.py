"""Writes events and the keys of their requests in the same transactions, for one partition of the keys."""

import logging
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message

from penstock.errors import InternalError
from penstock.gateway.key_index import KeyIndex, Used
from penstock.gateway.submission import Outgoing, Prepared
from penstock.log import Broker, from_time
from penstock.log.client import TIMEOUT, Configuration, metadata, undisguised
from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.log.transactional_producer import TransactionalProducer
from penstock.points import reach
from penstock.settings import Settings

_TIMEOUT = timedelta(seconds=10)  # what a killed gateway left open holds readers up for so long at most
_BY_KEY = -1  # the partition, in librdkafka's words
# librdkafka writes to stderr that it was shut out, which is nothing that anybody has to do something about.
_SILENT: Any = logging.Logger("librdkafka", logging.CRITICAL + 1)
_KAFKA: Configuration = {
    "delivery.report.only.error": False,
    "enable.sparse.connections": False,
    "logger": _SILENT,
}


class KeyRecord(msgspec.Struct):
    """What the log keeps of a key: the digest of its body, and the answer."""

    body: bytes
    answer: msgspec.Raw


class Write(NamedTuple):
    """Messages to write, and the key under which their positions are remembered."""

    key: bytes
    body: bytes
    content: Prepared


class KeyWriter:
    """The writer of one partition.

    Its transactional id is the partition's: opening it shuts out the one before, whose transaction is
    committed or aborted by then, and reads the keys that were used since. So of all gateways one at a time
    writes, and it knows every key. After any failure it is to be opened anew (`drop`).
    """

    def __init__(self, settings: Settings, topic: str, partition: int, id: str, keep: timedelta) -> None:
        self.id = id
        self._settings, self._topic, self._partition, self._keep = settings, topic, partition, keep
        self._index, self._broker = KeyIndex(), Broker(settings)
        self._producer: TransactionalProducer | None = None
        self._cursor: Cursor | None = None
        self._topic_id: str | None = None
        self._next: int | None = None  # the offset before which all keys are known

    def open(self) -> None:
        """Become the writer, unless this is it, and learn the keys that others have used."""
        if self._producer is not None:
            return
        made = TransactionalProducer(self._settings, self.id, _TIMEOUT, kafka=_KAFKA)
        for _ in range(2):  # a client that asks before it is connected rests for half a second
            metadata(made.client, made.listener, self._topic)
        made.open()
        self.catch_up()
        self._producer = made

    def catch_up(self) -> None:
        """Learn the keys that others have used since the last time; of a topic that was made again, all."""
        id = self._broker.topic_ids([self._topic]).get(self._topic)
        first, end = self._broker.offsets(self._topic)[self._partition]
        if id != self._topic_id or end < (self._next or 0):
            self._start_over()
        self._read_to(first, end)
        self._topic_id, self._next = id, end

    def find(self, key: bytes) -> Used | None:
        """Return what a key was used for, as far as this writer knows: all, while it is open."""
        return self._index.find(key)

    def write(self, batch: Sequence[Write]) -> list[bytes]:
        """Write messages, then keys with their positions, commit both at once, and return the answers."""
        if self._producer is None:
            raise InternalError(f"{self.id!r} is not open")
        with undisguised(self._producer.listener):
            return self._written(self._producer, batch)

    def _written(self, producer: TransactionalProducer, batch: Sequence[Write]) -> list[bytes]:
        producer.begin()
        sending = _Sending(producer)
        slots = [[sending.send(each) for each in write.content.messages] for write in batch]
        reported = sending.wait()
        answers = [
            write.content.answer([reported[slot] for slot in own])
            for write, own in zip(batch, slots, strict=True)
        ]
        reach("gateway.sent", self.id)
        used, known = self._remember(producer, batch, answers)
        reach("gateway.recorded", self.id)
        producer.commit()
        reach("gateway.committed", self.id)
        self._index.add(used)
        self._next = known
        return answers

    def drop(self) -> None:
        """Give the producer up, after a failure: what it has open, the next one ends."""
        self._producer = None

    def relearn(self) -> None:
        """Give up the keys, too, after their index has failed: the log has them all, and is read anew."""
        self.drop()
        self._topic_id = None

    def forget(self) -> None:
        """Forget the keys that are older than they are kept."""
        self._index.forget(_now() - self._keep // timedelta(milliseconds=1))

    def close(self) -> None:
        """Let go of the broker and the keys."""
        self.drop()
        self._let_go()

    def _start_over(self) -> None:
        self._let_go()
        self._index, self._cursor, self._next = KeyIndex(), None, None

    def _let_go(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
        with suppress(sqlite3.Error):  # it may be broken
            self._index.close()

    def _read_to(self, first: int, end: int) -> None:
        """Read what is not known; what the topic no longer has is older than keys are kept."""
        if self._cursor is None:
            self._cursor = Cursor(self._topic, self._settings, [self._partition])
        if self._next is None:
            self._cursor.start(from_time(datetime.now(UTC) - self._keep))
        else:
            self._cursor.go_to({self._partition: max(first, self._next)})
        if self._cursor.position[self._partition] < end:
            for messages in self._cursor.chunks_to({self._partition: end}, 5_000):
                self._index.add([_used(each) for each in messages])
        self._cursor.client.unassign()  # it would go on fetching

    def _remember(
        self, producer: TransactionalProducer, batch: Sequence[Write], answers: Sequence[bytes]
    ) -> tuple[list[Used], int]:
        """Add the keys to the transaction; return them, and the offset before which all will be known."""
        sending, used = _Sending(producer), list[Used]()
        for write, answer in zip(batch, answers, strict=True):
            value = msgspec.json.encode(KeyRecord(write.body, msgspec.Raw(answer)))
            sending.send(Outgoing(self._topic, write.key, value), partition=self._partition)
            used.append(Used(write.key, write.body, answer, _now()))
        return used, max(offset + 1 for _, offset in sending.wait())


class _Sending:
    """Messages of a transaction on their way, and where they came to stand."""

    def __init__(self, producer: TransactionalProducer) -> None:
        self._client = producer.client
        self._positions: list[tuple[int, int] | None] = []
        self._error: KafkaError | None = None

    def send(self, message: Outgoing, partition: int = _BY_KEY) -> int:
        """Queue a message, and return the place of its position among those that `wait` returns."""
        slot = len(self._positions)
        self._positions.append(None)
        report, headers = partial(self._reported, slot), [*message.headers] or None
        while True:
            try:
                self._client.produce(
                    message.topic, message.value, message.key, partition, on_delivery=report, headers=headers
                )
                return slot
            except BufferError:
                self._client.poll(0.05)

    def wait(self) -> list[tuple[int, int]]:
        """Return the positions once the broker has acknowledged them all."""
        deadline = time.monotonic() + TIMEOUT
        while self._error is None and None in self._positions and time.monotonic() < deadline:
            self._client.flush(0.5)
        if self._error is not None:
            raise KafkaException(self._error)
        if None in self._positions:
            raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT, f"no answer in {TIMEOUT:.0f} s"))
        return [each for each in self._positions if each is not None]

    def _reported(self, slot: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._error = self._error or error
        else:
            self._positions[slot] = (int(message.partition() or 0), int(message.offset() or 0))


def _used(message: Received) -> Used:
    record = msgspec.json.decode(message.value() or b"", type=KeyRecord)
    return Used(message.key() or b"", record.body, bytes(record.answer), message.timestamp()[1])


def _now() -> int:
    return time.time_ns() // 1_000_000
