"""The registry's topic: one partition, compacted, read from its beginning by every instance."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import ConfigurationError, InvalidSchemaError, LogError
from penstock.log.broker import Broker
from penstock.log.client import TIMEOUT, ErrorListener, asking, configuration, explain
from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.registry.records import Record, from_message, to_message
from penstock.settings import Settings

NAME = "_penstock_schemas"
_TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
_CONFIG = {"cleanup.policy": "compact"}


class SchemaTopic:
    """Appends records, and hands `apply` every record in the topic's order, its own among them."""

    def __init__(self, settings: Settings, apply: Callable[[Record], None]) -> None:
        self._apply = apply
        self._listener = ErrorListener()
        self._position = 0
        self._moved = threading.Condition()
        self._failure: Exception | None = None
        self._closed = threading.Event()
        self._broker = Broker(settings)
        self._broker.ensure(NAME, 1, _CONFIG)
        self._producer = confluent_kafka.Producer(
            configuration(settings, {"enable.idempotence": True, "linger.ms": 0}, {}, self._listener)
        )
        self._cursor = Cursor(NAME, settings, [0], kafka={"fetch.wait.max.ms": 100})
        self._cursor.start()
        self._reader = threading.Thread(target=self._read, name="schema-topic", daemon=True)
        self._reader.start()
        self.catch_up()

    @property
    def has_failed(self) -> bool:
        """Whether its reader has ended with an error: what is written from then on is not seen."""
        return self._failure is not None

    def append(self, record: Record) -> None:
        """Write a record and wait until it was applied here: whether it counted is for the state to say."""
        key, value = to_message(record)
        answers: list[tuple[Any, Any]] = []
        with asking("write to the schema topic", self._listener), _refusing_large(len(value)):
            self._producer.produce(NAME, value, key, on_delivery=lambda *answer: answers.append(answer))
            self._producer.flush(TIMEOUT)
        if not answers:
            raise LogError(f"can't write to the schema topic: {self._listener.last or 'no answer'}")
        if answers[0][0] is not None and answers[0][0].code() in _TOO_LARGE:
            raise _too_large(len(value))
        if answers[0][0] is not None:
            raise explain("write to the schema topic", answers[0][0], self._listener)
        self._wait_for(answers[0][1].offset() + 1)

    def catch_up(self) -> None:
        """Wait until everything that stands in the topic now was applied."""
        # Not by asking the cursor: a call to a client that another thread polls may wait for ever.
        self._wait_for(self._broker.end(NAME, 0))

    def close(self) -> None:
        self._closed.set()
        self._reader.join(TIMEOUT)
        self._cursor.close()

    def _wait_for(self, position: int) -> None:
        deadline = time.monotonic() + TIMEOUT
        with self._moved:
            while self._position < position:
                if isinstance(self._failure, ConfigurationError):
                    raise self._failure
                if self._failure is not None:
                    raise LogError(f"the schema topic can't be read: {self._failure}") from self._failure
                if not self._moved.wait(deadline - time.monotonic()):
                    raise LogError(f"the schema topic was not read up to {position} in {TIMEOUT:.0f} s")

    def _read(self) -> None:
        try:
            while not self._closed.is_set():
                self._take(self._cursor.read())
        except Exception as error:
            self._failure = error
            with self._moved:
                self._moved.notify_all()

    def _take(self, messages: list[Received]) -> None:
        for message in messages:
            record = from_message(message.key(), message.value())
            if record is not None:
                self._apply(record)
        with self._moved:
            self._position = self._cursor.position[0]
            self._moved.notify_all()


@contextmanager
def _refusing_large(size: int) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() in _TOO_LARGE:
            raise _too_large(size) from None
        raise


def _too_large(size: int) -> InvalidSchemaError:
    return InvalidSchemaError(
        f"the schema takes {size} bytes in the registry's topic, which is more than a message may have",
        hint=f"split it into referred schemas, or raise max.message.bytes of {NAME} and message.max.bytes",
    )
