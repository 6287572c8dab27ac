"""From messages to the log: events to their topic, what is malformed or refused to its dead letters."""

import time
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from penstock.errors import DataError, DeliveryError, PenstockError, TryAgainError
from penstock.events import Event
from penstock.inlets.messages import Messages
from penstock.inlets.reader import Encoded, Reader
from penstock.inlets.receiver import Incoming
from penstock.log import Broker, DeadLetter, DeadLetters, Failure, Producer
from penstock.log.client import Configuration, asking
from penstock.log.topic import DEAD_LETTERS
from penstock.schemas import SchemaDirectory
from penstock.settings import Settings

E = TypeVar("E", bound=Event)
SENDER = "penstock.inlet.sender"  # the header of a dead letter that says where it came from
PART = "penstock.inlet.part"  # of one that holds no whole message
# What waits for the log is bounded; how long it may wait is not: a broker that is away loses nothing.
_BUFFER = {"queue.buffering.max.messages": 50_000, "queue.buffering.max.kbytes": 64 * 2**10}
_FOR_EVER: Configuration = {"message.timeout.ms": 0}


class Intake(Generic[E]):
    """Brings messages to the log; `sent` and `dead` count where they went."""

    def __init__(
        self, messages: Messages[E], settings: Settings, schemas: SchemaDirectory | None = None
    ) -> None:
        self.sent = self.dead = 0
        self._topic = messages.topic.name
        self._reader = Reader(messages, schemas)
        Broker(settings).topic(self._topic)
        DeadLetters(settings).ensure(self._topic + DEAD_LETTERS)  # what can't be buried is not to be received
        theirs = settings.client()
        kafka = {name: theirs.get(name, own) for name, own in _BUFFER.items()} | dict(_FOR_EVER)
        self._producer = Producer(settings, when_full="drop", kafka=kafka)

    @property
    def waiting(self) -> int:
        """How many messages the log has not acknowledged."""
        return len(self._producer.client)

    def take(self, message: Incoming, now: datetime) -> bool:
        """Hand a message to the log, or to its dead letters; False if there is no room for it now."""
        if message.fault is not None:
            return self._bury(message, message.fault)
        try:
            encoded = self._reader.read(message.data, now)
        except DataError as error:
            return self._bury(message, error.message)
        except TryAgainError:  # the registry does not answer
            return False
        return self._send(encoded, message)

    def wait(self, seconds: float) -> None:
        """Let the log answer; raise if it shuts us out."""
        what, listener = f"write to {self._topic!r}", self._producer.listener
        with asking(what, listener):
            self._producer.client.poll(seconds)
        listener.raise_refusal(what)

    def flush(self, patience: float) -> bool:
        """Wait until the log has acknowledged everything; False if it has not in time."""
        until = time.monotonic() + patience
        while True:
            try:
                self._producer.flush(timedelta(seconds=max(0.0, until - time.monotonic())))
                return True
            except DeliveryError as error:
                if not error.failures:
                    return False
                self._bury_refused(error)

    def _send(self, encoded: Encoded, message: Incoming) -> bool:
        try:
            has_room = self._producer.send_bytes(self._topic, encoded.key, encoded.value)
        except DeliveryError as error:
            self._bury_refused(error)
            has_room = True
        except PenstockError as error:
            return self._bury(message, error.message)
        self.sent += has_room
        return has_room

    def _bury(self, message: Incoming, reason: str) -> bool:
        headers = [(SENDER, message.sender.encode())] + ([(PART, b"1")] if message.fault else [])
        letter = DeadLetter(
            self._topic, -1, -1, reason, datetime.now(UTC), None, message.data, tuple(headers)
        )
        has_room = self._send_letter(letter)
        self.dead += has_room
        return has_room

    def _bury_refused(self, failed: DeliveryError) -> None:
        """What the broker refuses for good is a dead letter, too, with its key and ready to be redriven."""
        events = [each for each in failed.failures if isinstance(each, Failure) and each.topic == self._topic]
        for failure in events:
            letter = DeadLetter(
                self._topic, -1, -1, failure.reason, datetime.now(UTC), failure.key, failure.value
            )
            while not self._send_letter(letter):
                self.wait(0.05)
            self.sent, self.dead = self.sent - 1, self.dead + 1
        if len(events) < len(failed.failures):  # a dead letter that the broker refuses has no other place
            raise failed

    def _send_letter(self, letter: DeadLetter) -> bool:
        topic = self._topic + DEAD_LETTERS
        try:
            return self._producer.send_bytes(topic, letter.key, letter.value, letter.to_headers())
        except DeliveryError as error:  # about events that were sent before: the letter is handed over
            self._bury_refused(error)
            return True
