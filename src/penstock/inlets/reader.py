"""From a message to a record of the log: decoded, checked against the event's class, and encoded."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from penstock.errors import DecodeError
from penstock.events import Event, new_id
from penstock.events.checks import check_fields, checks_of
from penstock.inlets.line_template import LineTemplate
from penstock.inlets.messages import Messages
from penstock.log import Table
from penstock.schemas import SchemaDirectory
from penstock.schemas.codec import unreadable
from penstock.schemas.formats import CODECS
from penstock.schemas.shape import shape_of

E = TypeVar("E", bound=Event)
Parse = Callable[[str], Any]
_LARGEST = 900_000  # bytes of a record: Kafka's limit is 1 MB, headers included


class Encoded(NamedTuple):
    """An event as it will stand in the log."""

    key: bytes | None
    value: bytes


class Reader(Generic[E]):
    """Reads messages; a schema that the registry refuses is refused here, before any has come."""

    def __init__(self, messages: Messages[E], schemas: SchemaDirectory | None = None) -> None:
        topic = messages.topic
        self._topic, self._received_at = topic, messages.received_at
        self._codec = topic.codec(schemas)
        if topic.is_registered and schemas is not None:
            CODECS[topic.format].numbered(topic.event, topic.subject, schemas, topic.upcasts)
        self._revive = shape_of(topic.event).revive
        self._parse = _parser(messages.template, _twin(messages))
        # The twin of JSON is checked as it is made; a line's "nan" is a float for msgspec, and not for us.
        self._checks = () if messages.template is None else checks_of(topic.event)

    def read(self, data: bytes, now: datetime) -> Encoded:
        """Return the record of a message; one that is no such event raises a DataError."""
        try:
            event = self._event(data, now)
        except Exception as error:
            raise unreadable(self._topic.event.__name__, data, error) from error
        encoded = Encoded(self._topic.key_of(event), self._codec.encode(event))
        if encoded.key is None and isinstance(self._topic, Table):
            raise DecodeError(f"the key {self._topic.key!r} is None, and a table's row has one")
        if len(encoded.value) > _LARGEST:
            raise DecodeError(f"the event has {len(encoded.value)} bytes, the most are {_LARGEST}")
        return encoded

    def _event(self, data: bytes, now: datetime) -> E:
        twin = self._parse(data.decode())
        if twin.id is msgspec.UNSET:
            twin.id = new_id()
        if self._received_at is not None and getattr(twin, self._received_at) is msgspec.UNSET:
            setattr(twin, self._received_at, now)
        event: E = self._revive(twin)
        check_fields(event, self._checks)
        return event


def _twin(messages: Messages[E]) -> type:
    """What messages are parsed into: as for the topic's own, but some fields may be left out."""
    shape = shape_of(messages.topic.event)
    base = shape.strict if messages.topic.unknown == "refuse" else shape.lenient
    kinds = {field.name: field.type for field in msgspec.structs.fields(base)}
    fields = [(name, kinds[name] | msgspec.UnsetType, msgspec.UNSET) for name in messages.filled_in]
    return msgspec.defstruct(
        messages.topic.event.__name__,
        fields,
        bases=(base,),
        kw_only=True,
        forbid_unknown_fields=messages.topic.unknown == "refuse",
    )


def _parser(template: LineTemplate | None, twin: type) -> Parse:
    if template is None:
        return msgspec.json.Decoder(twin).decode
    return lambda line: msgspec.convert(template.values(line.rstrip("\r\n")), twin, strict=False)
