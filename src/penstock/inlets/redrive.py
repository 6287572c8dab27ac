"""Redrive of what an inlet could not read: its dead letters are read again, once the cause is fixed."""

from typing import TypeVar

from penstock.errors import DecodeError
from penstock.events import Event
from penstock.inlets.intake import PART, SENDER
from penstock.inlets.messages import Messages
from penstock.inlets.reader import Reader
from penstock.log import DeadLetter, Redriven
from penstock.log import redrive as redrive_letters
from penstock.schemas import SchemaDirectory
from penstock.settings import Settings

E = TypeVar("E", bound=Event)


def redrive(messages: Messages[E], settings: Settings, *, schemas: SchemaDirectory | None = None) -> Redriven:
    """Read an inlet's dead letters as messages, and send what is an event now; each exactly once.

    The time of receipt is that of the letter. What holds no whole message stays a dead letter, and so do
    letters of others: they hold what stood in the topic, or was to, and no message.
    """
    reader = Reader(messages, schemas)

    def record(letter: DeadLetter) -> tuple[bytes | None, bytes]:
        if not _is_message(letter):
            raise DecodeError(letter.error)
        return reader.read(letter.value or b"", letter.at)

    return redrive_letters(messages.topic.name, settings, record=record)


def _is_message(letter: DeadLetter) -> bool:
    """Whether it is a message as it came; events of an inlet's redrive have the sender's header as well."""
    names = {name for name, _ in letter.headers}
    return letter.origin is None and SENDER in names and PART not in names
