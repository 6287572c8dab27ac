"""The outbox: rows, or messages without a table, that are events of their own."""

import re
from collections.abc import Callable

import msgspec

from penstock.capture.capture import Outbox
from penstock.capture.pgoutput import Change, Values
from penstock.capture.records import Origin
from penstock.capture.tables import TableShape
from penstock.errors import CaptureError
from penstock.log.topic import DEAD_LETTERS
from penstock.log.transactional_writer import Message

Ensure = Callable[[str, bytes | None], str | None]  # makes a topic, or says why it takes no such event
_TOPIC = re.compile(rb"[A-Za-z0-9._-]{1,200}")


class OutboxMessage(msgspec.Struct):
    """An event that an application wrote with `pg_logical_emit_message`, without a table."""

    topic: str
    payload: msgspec.Raw
    key: str | None = None
    id: str | None = None
    type: str | None = None


class OutboxRecords:
    """Makes an event of each row that is inserted; what becomes of the row afterwards does not matter."""

    def __init__(self, outbox: Outbox, shape: TableShape, source: str, ensure: Ensure) -> None:
        names = [each.name for each in shape.columns]
        wanted = (outbox.topic, outbox.key, outbox.payload)
        missing = [name for name in wanted if name not in names]
        if missing:
            raise CaptureError(
                f"the outbox {shape.path!r} has no column {missing[0]!r}", hint=f"it has {', '.join(names)}"
            )
        self._topic, self._key, self._payload = (names.index(name) for name in wanted)
        self._headers = [
            (header, names.index(name))
            for header, name in (("id", outbox.id), ("type", outbox.type))
            if name in names
        ]
        self.topic, self.has_key = source, False
        self._ensure = ensure

    def of(self, change: Change, origin: Origin, lsn: int) -> list[Message]:  # noqa: ARG002
        """Return the event of an inserted row."""
        row = change.after
        if change.op not in "cr" or row is None:
            return []
        headers = [(name, value) for name, place in self._headers if isinstance(value := row[place], bytes)]
        topic, key, payload = (_bytes(row[place]) for place in (self._topic, self._key, self._payload))
        return [routed(self.topic, topic, key, payload, headers, self._ensure)]

    def key_of(self, values: Values) -> bytes | None:
        return _bytes(values[self._key])

    def deletion(self, key: bytes, origin: Origin, lsn: int) -> list[Message]:  # noqa: ARG002
        return []

    def truncation(self, origin: Origin, lsn: int) -> list[Message]:  # noqa: ARG002
        return []


def outbox_message(source: str, content: bytes, ensure: Ensure) -> Message:
    """Return the event of a message; one that can't be read goes to the dead letters."""
    try:
        found = msgspec.json.decode(content, type=OutboxMessage)
    except msgspec.MsgspecError as error:
        return _dead(source, None, content, f"it is not an outbox message: {error}", ensure)
    headers = [(name, text.encode()) for name in ("id", "type") if (text := getattr(found, name)) is not None]
    key = None if found.key is None else found.key.encode()
    return routed(source, found.topic.encode(), key, bytes(found.payload), headers, ensure)


def routed(
    source: str,
    topic: bytes | None,
    key: bytes | None,
    payload: bytes | None,
    headers: list[tuple[str, bytes]],
    ensure: Ensure,
) -> Message:
    """Return an event for its topic, or a dead letter where it names none that Kafka takes."""
    if topic is None or not _TOPIC.fullmatch(topic) or topic in (b".", b".."):
        return _dead(source, key, payload, f"{(topic or b'').decode()!r} is not a topic's name", ensure)
    name = topic.decode()
    if (refusal := ensure(name, key)) is not None:
        return _dead(source, key, payload, refusal, ensure)
    return name, key, payload, headers or None


def _dead(source: str, key: bytes | None, payload: bytes | None, error: str, ensure: Ensure) -> Message:
    topic = f"{source}{DEAD_LETTERS}"
    ensure(topic, b"")
    return topic, key, payload, [("penstock.dead.error", error.encode())]


def _bytes(value: object) -> bytes | None:
    return value if isinstance(value, bytes) else None
