"""Producing: typed events into topics, with every failure reported."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from penstock.durations import duration
from penstock.errors import BufferFullError, ConfigurationError, DeliveryError, PenstockError, TopicError
from penstock.events import Event
from penstock.log.access import access_error
from penstock.log.client import Configuration, ErrorListener, asking, configuration, explain, metadata
from penstock.log.topic import Table, Topic, key_bytes
from penstock.schemas import Codec, SchemaDirectory
from penstock.settings import Settings

E = TypeVar("E", bound=Event)
Acks = Literal["all", "1", "0"]
WhenFull = Literal["block", "raise", "drop"]
Headers = list[tuple[str, bytes]]
_POLL_EVERY = 1000


@dataclass(frozen=True)
class Failure:
    """An event that was handed over but not acknowledged, as it would have stood in the log."""

    topic: str
    key: bytes | None
    value: bytes | None
    reason: str


class Producer:
    """Sends events; leaving the `with` block waits until all are acknowledged, or raises.

        with Producer(settings) as producer:
            producer.send(clicks, Click(user="u1", at=now))

    `acks` is "all", "1" or "0"; a producer that waits for all is idempotent. `when_full` says what happens
    when the buffer is full: "block", "raise" (BufferFullError) or "drop" (counted in `dropped`).
    `linger` is how long a batch may wait to be filled. `schemas` is the registry, for topics whose messages
    name their schema. Any other Kafka setting goes into `kafka`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        acks: Acks = "all",
        when_full: WhenFull = "block",
        linger: str | timedelta = "5 ms",
        compression: str = "lz4",
        schemas: SchemaDirectory | None = None,
        kafka: Configuration | None = None,
    ) -> None:
        _check(acks, when_full)
        self.sent = 0
        self.dropped = 0
        self._failures: list[Failure] = []
        self._reason: KafkaError | None = None  # of the last failure
        self._when_full = when_full
        self._spread: dict[str, cycle[int]] = {}
        self._schemas = schemas
        self._codecs: dict[str, Codec[Any]] = {}
        own: Configuration = {
            "acks": acks,
            "enable.idempotence": acks == "all",
            "linger.ms": duration(linger) / timedelta(milliseconds=1),
            "compression.type": compression,
            # The partitioner of Kafka's own clients: the same key is in the same partition whoever wrote it.
            "partitioner": "murmur2_random",
        }
        demanded = {"delivery.report.only.error": True, **(kafka or {}), "on_delivery": self._on_failure}
        self.listener = ErrorListener()
        with asking("make a producer"):
            self._client = confluent_kafka.Producer(configuration(settings, own, demanded, self.listener))

    @property
    def client(self) -> confluent_kafka.Producer:
        """The confluent-kafka producer underneath."""
        return self._client

    def send(
        self,
        topic: Topic[E],
        event: E,
        *,
        headers: Headers | None = None,
        partition: int | None = None,
    ) -> bool:
        """Hand an event over; False if it was dropped, by request, because the buffer is full.

        If events sent earlier have failed meanwhile, this one is handed over and DeliveryError raised.
        """
        if type(event) is not topic.event:
            raise TopicError(
                f"topic {topic.name!r} takes {topic.event.__name__}, got a {type(event).__name__}"
            )
        key = topic.key_of(event)
        if key is None:
            if isinstance(topic, Table):
                raise TopicError(f"table {topic.name!r}: the key {topic.key!r} of {event!r} is None")
            if partition is None:
                partition = self._next_partition(topic.name)
        return self.send_bytes(topic.name, key, self._codec(topic).encode(event), headers, partition)

    def delete(self, table: Table[E], key: object) -> bool:
        """Send a tombstone: the row of this key is gone."""
        return self.send_bytes(table.name, key_bytes(key), None)

    def send_all(self, topic: Topic[E], events: Iterable[E]) -> int:
        """Send many events of one topic and return how many were handed over."""
        return sum(self.send(topic, event) for event in events)

    def send_bytes(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        partition: int | None = None,
    ) -> bool:
        """Hand over a message as it is, under the same guarantees as `send`."""
        more: dict[str, Any] = {} if partition is None else {"partition": partition}
        if headers:
            more["headers"] = headers
        while True:
            try:
                self._client.produce(topic, value, key, **more)
                break
            except BufferError:
                if not self._make_room(topic):
                    return False
            except KafkaException as error:
                raise explain(f"send to {topic!r}", error.args[0], self.listener) from error
        self.sent += 1
        if self.sent % _POLL_EVERY == 0:
            self._serve(self._client.poll, 0)
        if self._failures:
            self._raise_failures()
        return True

    def flush(self, timeout: str | timedelta = "2 minutes") -> None:
        """Wait until every event is acknowledged; raise DeliveryError for those that are not."""
        deadline = time.monotonic() + duration(timeout).total_seconds()
        while waiting := self._serve(self._client.flush, 0.5):
            if self._is_shut_out or time.monotonic() >= deadline:
                break
        if self._failures:
            self._raise_failures()
        if waiting:
            refused = self._refused(self.listener.refusal)
            raise DeliveryError(
                f"{waiting} events were not acknowledged: {self.listener.last or f'no answer in {timeout}'}",
                hint=f"{refused}they still wait in the buffer: mend the cause and flush again",
            )

    def refusal(self, what: str) -> PenstockError | None:
        """Return why the last failed event could not be sent, if that was a matter of access."""
        return access_error(what, self._reason, self.listener.user) if self._reason is not None else None

    def close(self) -> None:
        """Flush; nothing is to be sent after this."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except DeliveryError as failed:
            if error is None:
                raise
            error.add_note(str(failed))

    def _codec(self, topic: Topic[E]) -> Codec[E]:
        codec = self._codecs.get(topic.name)
        if codec is None:
            codec = self._codecs[topic.name] = topic.codec(self._schemas)
        return codec

    def _make_room(self, topic: str) -> bool:
        """Act on a full buffer; True means try again."""
        self._serve(self._client.poll, 0)
        if self._when_full == "block":
            self._serve(self._client.poll, 0.05)
            return True
        if self._when_full == "drop":
            self.dropped += 1
            return False
        raise BufferFullError(
            f"the buffer is full ({len(self._client)} events wait); this event to {topic!r} was not sent",
            hint='send less at once, or choose when_full="block" or "drop"',
        )

    def _next_partition(self, topic: str) -> int:
        """Round-robin over the topic's partitions, for events without a key."""
        if topic not in self._spread:
            with asking(f"find topic {topic!r}", self.listener):
                found = metadata(self._client, self.listener, topic).topics[topic]
            if found.error is not None:
                raise explain(f"send to {topic!r}", found.error, self.listener)
            self._spread[topic] = cycle(sorted(found.partitions))
        return next(self._spread[topic])

    @property
    def _is_shut_out(self) -> bool:
        """Whether waiting is no use; after a fatal error, the events that wait fail by themselves."""
        return self.listener.refusal is not None and not self.listener.refusal.fatal()

    def _serve(self, call: Callable[[float], int], seconds: float) -> int:
        """Let the client call back; it raises a fatal error, and the events that wait fail."""
        try:
            return call(seconds)
        except (KafkaException, SystemError) as error:
            self._heed(error)
            if self.listener.refusal is None:
                raise
            return len(self._client)

    def _on_failure(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            return
        try:
            self._fail(error, message)
        except SystemError as pending:  # this was called while a fatal error was being raised
            self._heed(pending.__cause__)
            self._fail(error, message)

    def _fail(self, error: KafkaError, message: Message) -> None:
        failure = Failure(str(message.topic()), message.key(), message.value(), error.str())
        self._failures.append(failure)
        self._reason = self.listener.refusal or error

    def _heed(self, raised: BaseException | None) -> None:
        cause = raised if isinstance(raised, KafkaException) else raised and raised.__cause__
        if isinstance(cause, KafkaException):
            self.listener(cause.args[0])

    def _refused(self, error: KafkaError | None) -> str:
        """What to do about an error that is a matter of access."""
        known = access_error("send", error, self.listener.user) if error is not None else None
        return f"{known.hint}; " if known else ""

    def _raise_failures(self) -> None:
        failures, self._failures = tuple(self._failures), []
        first, refused = failures[0], self._refused(self._reason)
        raise DeliveryError(
            f"{len(failures)} events were not acknowledged; the first, to {first.topic!r}: {first.reason}",
            failures=failures,
            hint=f"{refused}they are in `failures`: send them again once the cause is gone",
        )


def _check(acks: str, when_full: str) -> None:
    if acks not in ("all", "1", "0"):
        raise ConfigurationError(f"acks is {acks!r}, expected 'all', '1' or '0'")
    if when_full not in ("block", "raise", "drop"):
        raise ConfigurationError(f"when_full is {when_full!r}, expected 'block', 'raise' or 'drop'")
