"""A lane: the part of a sink's rows that is written in transactions of its own, with its own ledger."""

import time
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from penstock.errors import PenstockError, SinkError
from penstock.log.broker import Broker
from penstock.log.client import TIMEOUT, Ear, configuration
from penstock.log.ledger import Batch, Entry
from penstock.points import reach
from penstock.settings import Settings

Message = tuple[str, bytes | None, bytes | None, list[tuple[str, bytes]] | None]
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
# A client connects when it has something to ask, and one that asks for its coordinator before it is connected
# rests for half a second. So the clients of lanes connect at once, and ask for topics before anything else.
_AT_ONCE = {"enable.sparse.connections": False}
_TAIL = 20  # entries are looked for among the ledger's last records before all of it is read


def ledger_topic(sink: str) -> str:
    """The topic of a sink's ledger: a partition for each lane, compacted to the last entry."""
    return f"_penstock_ledger.{sink}"


class Lane:
    """Writes rows and the entry that tells of them in one transaction.

    Opening it ends what an earlier writer of the lane left open and shuts that writer out. After any failure
    the lane is to be thrown away: librdkafka may let a late request join the next transaction.
    """

    def __init__(self, settings: Settings, sink: str, number: int, timeout_ms: int) -> None:
        self.number = number
        self._sink = sink
        self._epoch = 0
        own = {"linger.ms": 100, "compression.type": "lz4", "queue.buffering.max.messages": 500_000}
        demanded = {
            "transactional.id": f"penstock.{sink}.{number}",
            "transaction.timeout.ms": timeout_ms,
            "partitioner": "murmur2_random",
        }
        with self._told("open"):
            self._producer = confluent_kafka.Producer(
                configuration(settings, own | _AT_ONCE, demanded, Ear())
            )
            for _ in range(2):  # after one answer it may still take itself for unconnected
                self._producer.list_topics(ledger_topic(sink), TIMEOUT)
            self._producer.init_transactions(TIMEOUT)
            self.entry = _last_entry(settings, sink, number)
        reach("sink.kafka.opened", sink)

    def claim(self, epoch: int) -> None:
        """Write down that a new writer is at work, so that an older one can't come back."""
        self._epoch = epoch
        self._write_down(replace(self.entry, epoch=epoch))
        reach("sink.kafka.claimed", self._sink)

    def serve(self, epoch: int) -> None:
        """Write for the writer of this epoch, unless it is over."""
        self.entry.refuse_older(epoch, self._sink)
        self._epoch = epoch

    def write(self, messages: Iterable[Message], batch: Batch) -> int:
        """Write a batch's rows unless they were written; return how many."""
        if not self.entry.owes(batch):
            return 0
        sent = self._write_down(Entry(self._epoch, batch), messages)
        reach("sink.kafka.committed", self._sink)
        return sent

    def write_at_most_once(self, messages: Iterable[Message], batch: Batch) -> int:
        """Write the entry first: what is lost on the way to the rows stays lost."""
        if not self.entry.owes(batch):
            return 0
        entry = Entry(self._epoch, batch)
        self._write_down(entry)
        reach("sink.kafka.committed", self._sink)
        return self._write_down(entry, messages)

    def _write_down(self, entry: Entry, messages: Iterable[Message] = ()) -> int:
        with self._told("write"):
            self._producer.begin_transaction()
            sent = self._send_all(messages)
            self._send(ledger_topic(self._sink), entry.to_json(), str(self.number), partition=self.number)
            if entry.batch is not None:
                reach("sink.kafka.sent", self._sink)
            self._producer.commit_transaction(2 * TIMEOUT)
        self.entry = entry
        return sent

    def _send_all(self, messages: Iterable[Message]) -> int:
        send, sent = self._send, 0
        for topic, key, value, headers in messages:
            send(topic, value, key, headers=headers)
            sent += 1
        return sent

    def _send(self, topic: str, value: bytes | None, key: bytes | str | None, **more: Any) -> None:
        """Queue a message; where the queue is full, wait until some are sent."""
        while True:
            try:
                self._producer.produce(topic, value, key, **more)
                return
            except BufferError:
                self._producer.poll(0.1)

    @contextmanager
    def _told(self, what: str) -> Any:
        try:
            yield
        except KafkaException as error:
            raise self._explained(what, error.args[0]) from error

    def _explained(self, what: str, error: Any) -> PenstockError:
        """One that breaks in may itself be a zombie: who is fenced, only the epoch in the ledger can say."""
        hint = "is the broker up? the batch is tried again"
        if isinstance(error, KafkaError) and error.code() in _FENCED:
            hint = "another writer has broken in; the next try finds out who may stay"
        return SinkError(f"can't {what} lane {self.number} of sink {self._sink!r}: {error}", hint=hint)


def _last_entry(settings: Settings, sink: str, number: int) -> Entry:
    """Read the lane's last committed entry, which counts only if every transaction before it is decided."""
    demanded = {
        "group.id": "penstock.ledger",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 10,
    }
    client = confluent_kafka.Consumer(configuration(settings, _AT_ONCE, demanded, Ear()))
    try:
        place = TopicPartition(ledger_topic(sink), number)
        client.list_topics(place.topic, TIMEOUT)
        first, _ = client.get_watermark_offsets(place, timeout=TIMEOUT)
        end = Broker(settings).end(place.topic, number)  # a reader of committed entries is told of no others
        near = max(first, end - _TAIL)
        found = _last_value(client, TopicPartition(place.topic, number, near), end)
        if found is None and near > first:
            found = _last_value(client, TopicPartition(place.topic, number, OFFSET_BEGINNING), end)
        return Entry() if found is None else Entry.from_json(found)
    finally:
        client.close()


def _last_value(client: Any, place: TopicPartition, end: int) -> bytes | None:
    """Read up to the end; where committed entries end before that, a transaction is not decided yet.

    What stands behind it may be the newest entry: an older one would have its batch written again.
    """
    client.assign([place])
    last, deadline = None, time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        message = client.poll(TIMEOUT)
        if message is None:
            break
        if message.error() is None:
            last = message.value()
        elif message.error().code() == KafkaError._PARTITION_EOF:
            if message.offset() >= end:
                return last
            client.seek(TopicPartition(place.topic, place.partition, message.offset()))
        elif not message.error().retriable():
            raise KafkaException(message.error())
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the ledger did not answer to its end"))
