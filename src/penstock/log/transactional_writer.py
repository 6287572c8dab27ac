"""Transactions with a ledger: messages and the record of them appear together, or not at all."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import PenstockError, SinkError, TargetError
from penstock.log.access import access_error
from penstock.log.client import TIMEOUT, Configuration, metadata, undisguised
from penstock.log.last_record import last_record
from penstock.log.transactional_producer import FENCED, TransactionalProducer
from penstock.settings import Settings

Message = tuple[str, bytes | None, bytes | None, list[tuple[str, bytes]] | None]
_HOPELESS = {
    KafkaError.MSG_SIZE_TOO_LARGE: "a result is larger than the topic or the client allows: raise "
    "max.message.bytes of the topic and message.max.bytes in [kafka], or make the result smaller",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "the flow's timeout= is longer than the broker's "
    "transaction.max.timeout.ms: make it shorter, or raise that",
    KafkaError.INVALID_RECORD: "the broker refuses the record, as a compacted topic does without a key",
    KafkaError.POLICY_VIOLATION: "the broker's policy forbids it",
    KafkaError.TOPIC_EXCEPTION: "the topic's name is not one that Kafka takes",
    KafkaError.UNSUPPORTED_VERSION: "the broker is too old for transactions",
}
# A client connects when it has something to ask, and one that asks for its coordinator before it is connected
# rests for half a second. So these clients connect at once, and ask for topics before anything else.
_OWN: Configuration = {"enable.sparse.connections": False, "queue.buffering.max.messages": 500_000}


class TransactionalWriter:
    """A producer of transactions; opening it ends what an earlier one of its id left open, and shuts it out.

    Like its producer, it is to be thrown away after any failure.
    """

    def __init__(self, settings: Settings, id: str, ledger: str, timeout_ms: int) -> None:
        self.id = id
        self._settings, self._ledger = settings, ledger
        self._undelivered: KafkaError | None = None
        self._topics: set[str] = set()  # that were written to
        timeout, kafka = timedelta(milliseconds=timeout_ms), _configured(settings)
        self._producer = TransactionalProducer(settings, id, timeout, linger="100 ms", kafka=kafka)
        self.client, self._listener = self._producer.client, self._producer.listener
        with self._explained("open"):
            for _ in range(2):  # after one answer it may still take itself for unconnected
                metadata(self.client, self._listener, ledger)
            self._producer.open()

    def last_record(self, partition: int) -> bytes | None:
        """Return the last record of a partition of the ledger, once all before it is decided."""
        return last_record(self._settings, self._ledger, partition)

    def write(
        self,
        messages: Iterable[Message],
        record: tuple[int, bytes],
        before_commit: Callable[[], None] = lambda: None,
    ) -> int:
        """Write messages and a record of the ledger, as (partition, value); return how many messages."""
        partition, value = record
        with self._explained("write"):
            self._producer.begin()
            sent = self._send_all(messages)
            self._send(self._ledger, value, str(partition), partition=partition)
            before_commit()
            self._producer.commit(2 * TIMEOUT)
        return sent

    def _send_all(self, messages: Iterable[Message]) -> int:
        send, sent, last = self._send, 0, None
        for topic, key, value, headers in messages:
            if topic is not last:
                self._topics.add(topic)
                last = topic
            send(topic, value, key, headers=headers)
            sent += 1
        return sent

    def _send(self, topic: str, value: bytes | None, key: bytes | str | None, **more: Any) -> None:
        """Queue a message; where the queue is full, wait until some are sent."""
        while True:
            try:
                self.client.produce(topic, value, key, on_delivery=self._delivered, **more)
                return
            except BufferError:
                self.client.poll(0.1)

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        """Keep why a message was not taken: the commit only says that some were not."""
        if error is not None and error.code() != KafkaError._PURGE_QUEUE:
            self._undelivered = self._undelivered or error

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            with undisguised():
                yield
        except KafkaException as error:
            raise self._error(what, self._undelivered or error.args[0]) from error

    def _error(self, what: str, error: object) -> PenstockError:
        """One that breaks in may itself be a zombie: who is fenced, only the epoch in the ledger can say."""
        code = error.code() if isinstance(error, KafkaError) else None
        known = self._denied(what, error)
        if known is not None:
            return known
        said = f"can't {what} {self.id!r}: {error}"
        if code in _HOPELESS:
            return TargetError(said, hint=_HOPELESS[code])
        if code in FENCED:
            return SinkError(said, hint="another writer has broken in; the next try finds out who may stay")
        return SinkError(said, hint="is the broker up? the batch is tried again")

    def _denied(self, what: str, error: object) -> PenstockError | None:
        """An error of access, which names the topics of the transaction: the broker doesn't say which one."""
        refused = self._listener.refusal
        if refused is None and isinstance(error, KafkaError):
            refused = error
        topics = ", ".join(sorted(self._topics)) or self._ledger
        what = f"{what} {self.id!r}, which writes to {topics}"
        return access_error(what, refused, self._listener.user) if refused else None


def _configured(settings: Settings) -> Configuration:
    """What this producer has besides a producer's settings; the user's win, but for where keys go."""
    theirs = settings.client()
    return {name: theirs.get(name, own) for name, own in _OWN.items()} | {"partitioner": "murmur2_random"}
