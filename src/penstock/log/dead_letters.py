"""Dead letters: what can't be decoded or worked on is kept beside its topic, and can be redriven."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from penstock.errors import DataError
from penstock.log.broker import Broker
from penstock.log.message import Received
from penstock.log.producer import Headers, Producer
from penstock.log.topic import DEAD_LETTERS
from penstock.settings import Settings

_PREFIX = "penstock.dead."
_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
N = TypeVar("N", int, None)


@dataclass(frozen=True)
class DeadLetter:
    """A message that could not be decoded or worked on: its bytes, where it stood and why it failed.

    `deliveries` says how often a queue had handed it out; it is None for what a queue had no part in.
    """

    topic: str
    partition: int
    offset: int
    error: str
    at: datetime
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    deliveries: int | None = None

    @property
    def origin(self) -> tuple[str, int, int] | None:
        """Where the message stood; None if that is not known."""
        return None if self.offset < 0 else (self.topic, self.partition, self.offset)

    def to_headers(self) -> Headers:
        """Return the original headers followed by our own."""
        own = {
            "topic": self.topic,
            "partition": str(self.partition),
            "offset": str(self.offset),
            "error": self.error,
            "at": self.at.isoformat(),
        }
        if self.deliveries is not None:
            own["deliveries"] = str(self.deliveries)
        theirs = [header for header in self.headers if not header[0].startswith(_PREFIX)]
        return [*theirs, *((_PREFIX + name, text.encode()) for name, text in own.items())]

    @classmethod
    def from_message(cls, message: Received) -> "DeadLetter":
        """Read a message of a dead-letter topic; whatever strangers wrote there, it is a letter."""
        headers = message.headers() or []
        own = {
            name.removeprefix(_PREFIX): text.decode(errors="replace")
            for name, text in headers
            if name.startswith(_PREFIX) and text is not None
        }
        return cls(
            topic=own.get("topic", message.topic().removesuffix(DEAD_LETTERS)),
            partition=_number(own.get("partition"), -1),
            offset=_number(own.get("offset"), -1),
            error=own.get("error", "unknown"),
            at=_moment(own.get("at")),
            key=message.key(),
            value=message.value(),
            headers=tuple(header for header in headers if not _is_ours(*header)),
            deliveries=_number(own.get("deliveries"), None),
        )


def _is_ours(name: str, value: bytes | None) -> bool:
    """Whether a header is of the letter, and not of the message that it was."""
    made = name == "penstock.made-by" and (value or b"").split(b" ")[0].endswith(DEAD_LETTERS.encode())
    return made or name.startswith(_PREFIX)


def _number(text: str | None, otherwise: N) -> int | N:
    return int(text) if text is not None and _NUMBER.fullmatch(text) else otherwise


def _moment(text: str | None) -> datetime:
    try:
        return datetime.fromisoformat(text or "")
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def dead_letter(
    message: Received, error: DataError | str, at: datetime, deliveries: int | None = None
) -> DeadLetter:
    """Return the dead letter of a consumed message."""
    return DeadLetter(
        message.topic(),
        message.partition(),
        message.offset(),
        error if isinstance(error, str) else error.message,
        at,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        deliveries,
    )


class DeadLetters:
    """Sends dead letters; the topic beside the original is made when the first one comes."""

    def __init__(self, settings: Settings, producer: Producer | None = None) -> None:
        self._settings = settings
        self._producer = producer
        self._ready: set[str] = set()

    def send(self, letter: DeadLetter) -> None:
        topic = letter.topic + DEAD_LETTERS
        self.ensure(topic)
        if self._producer is None:
            self._producer = Producer(self._settings)
        self._producer.send_bytes(topic, letter.key, letter.value, letter.to_headers())

    def ensure(self, topic: str) -> None:
        if topic not in self._ready:
            Broker(self._settings).ensure(topic, 1, {"retention.ms": "-1"})
            self._ready.add(topic)

    def flush(self) -> None:
        """Wait until the dead letters are acknowledged: only then may reading go on past them."""
        if self._producer is not None:
            self._producer.flush()
