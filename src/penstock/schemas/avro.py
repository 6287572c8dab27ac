"""The Avro schema of an event class."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from uuid import UUID

from penstock.documents import Json, JsonObject
from penstock.errors import EventTypeError
from penstock.events.event import Event
from penstock.events.kinds import (
    MISSING,
    Choice,
    Field,
    Fixed,
    Kind,
    Many,
    Mapped,
    Maybe,
    Record,
    Scalar,
    fields_of,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCALARS: dict[type, Json] = {
    str: "string",
    int: "long",
    float: "double",
    bool: "boolean",
    bytes: "bytes",
    datetime: {"type": "long", "logicalType": "timestamp-micros"},
    date: {"type": "int", "logicalType": "date"},
    UUID: {"type": "string", "logicalType": "uuid"},
}


def avro_schema(cls: type[Event]) -> JsonObject:
    """Return the Avro schema of an event class, as JSON values.

    >>> from dataclasses import dataclass
    >>> from datetime import datetime
    >>> @dataclass(frozen=True)
    ... class Click(Event):
    ...     at: datetime
    >>> [field["name"] for field in avro_schema(Click)["fields"]]
    ['id', 'at']
    """
    schema: JsonObject = _Writer().record(cls, cls.event_type)
    return schema


class _Writer:
    """Writes a schema; a named type is written out once and referred to by name after that."""

    def __init__(self) -> None:
        self._written: dict[str, type] = {}

    def record(self, cls: type, name: str) -> Json:
        name = ".".join(re.sub(r"[^A-Za-z0-9_]", "_", part) for part in name.split("."))
        if self._was_written(name, cls):
            return name
        return {"type": "record", "name": name, "fields": [self._field(field) for field in fields_of(cls)]}

    def _was_written(self, name: str, cls: type) -> bool:
        known = self._written.get(name)
        if known not in (None, cls):
            raise EventTypeError(
                f"two classes are called {name}: {known} and {cls}",
                hint="rename one: Avro knows types by their name",
            )
        self._written[name] = cls
        return known is cls

    def _field(self, field: Field) -> JsonObject:
        written = {"name": field.name, "type": self._type(field.kind)}
        if not field.required:
            written["default"] = _default(field.kind, field.default)
        if isinstance(field.kind, Maybe) and field.default not in (MISSING, None):
            written["type"].reverse()  # a union's default belongs to its first branch
        return written

    def _type(self, kind: Kind) -> Json:
        match kind:
            case Scalar(python):
                return _SCALARS[python]
            case Fixed(precision):
                size = {"precision": precision.digits, "scale": precision.scale}
                return {"type": "bytes", "logicalType": "decimal", **size}
            case Choice(enum):
                return self._enum(enum)
            case Maybe(inner):
                return ["null", self._type(inner)]
            case Many(item):
                return {"type": "array", "items": self._type(item)}
            case Mapped(value):
                return {"type": "map", "values": self._type(value)}
            case Record(cls):
                return self.record(cls, cls.__name__)

    def _enum(self, enum: type[Enum]) -> Json:
        """Avro's symbols are names: an enum with other values is written as text."""
        symbols = [member.value for member in enum]
        if not all(_NAME.fullmatch(symbol) for symbol in symbols):
            return "string"
        if self._was_written(enum.__name__, enum):
            return enum.__name__
        return {"type": "enum", "name": enum.__name__, "symbols": symbols}


def _default(kind: Kind, value: Json) -> Json:
    """Return a default as Avro writes it in a schema."""
    match kind, value:
        case Maybe(inner), _:
            return None if value is None else _default(inner, value)
        case Many(item), _:
            return [_default(item, each) for each in value]
        case Mapped(inner), _:
            return {key: _default(inner, each) for key, each in value.items()}
        case Record(cls), _:
            return {field.name: _default(field.kind, getattr(value, field.name)) for field in fields_of(cls)}
        case Fixed(precision), Decimal():
            unscaled = int(value.scaleb(precision.scale))
            return unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True).decode("latin-1")
        case _, bytes():
            return value.decode("latin-1")
        case _, datetime():
            return (value - _EPOCH) // timedelta(microseconds=1)
        case _, date():
            return (value - _EPOCH.date()).days
        case _, Enum():
            return value.value
        case _, UUID():
            return str(value)
    return value
