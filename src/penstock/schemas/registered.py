"""Codecs whose messages name their schema, in Confluent's wire format: every version can be read."""

import io
import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar
from uuid import UUID

import fastavro
import msgspec

from penstock.documents import Json
from penstock.errors import DataError, DecodeError
from penstock.events import Event
from penstock.schemas.avro import avro_schema
from penstock.schemas.codec import Decoded, Unknown, json_reader, unreadable
from penstock.schemas.compatibility import SchemaKind
from penstock.schemas.directory import NumberedSchema, SchemaDirectory, WrittenSchema
from penstock.schemas.shape import shape_of
from penstock.schemas.upcasting import Upcast, upcasts_from

E = TypeVar("E", bound=Event)
_NATIVE = (bytes, datetime, date, Decimal, UUID)
_HEADER = struct.Struct(">bI")
_ABSENT = object()
Read = Callable[[bytes], Any]


class RegisteredCodec(ABC, Generic[E]):
    """A zero byte, the schema's number in four bytes, the event.

    Messages of the class's own schema are read straight into it. Those of another version are read with the
    schema they were written with, then upcast step by step, then fitted to the class: fields it does not have
    are left out, and those it has and they don't get the class's default. `unknown` is for messages of the
    class's own schema, as in JsonCodec.
    """

    kind: SchemaKind

    def __init__(
        self,
        cls: type[E],
        subject: str,
        directory: SchemaDirectory,
        upcasts: Sequence[Upcast] = (),
        unknown: Unknown = "ignore",
    ) -> None:
        shape = shape_of(cls)
        self._class, self._name, self._subject, self._directory = cls, cls.__name__, subject, directory
        self._strict, self._lenient, self._revive = shape.strict, shape.lenient, shape.revive
        self._unknown = unknown
        self._upcasts = upcasts_from(1, upcasts)
        self._text = self.schema_text(cls)
        self._own: bytes | None = None  # the header that this codec writes
        self._own_header: bytes | None = None  # the one that was read before messages of the own schema
        self._own_reader: Read | None = None
        self._readers: dict[int, Read] = {}

    @staticmethod
    @abstractmethod
    def schema_text(cls: type[Event]) -> str:
        """The text of the class's schema, as it is registered."""
        ...

    @classmethod
    def numbered(
        cls,
        event: type[Event],
        subject: str,
        directory: SchemaDirectory,
        upcasts: Sequence[Upcast] = (),  # noqa: ARG003
    ) -> NumberedSchema:
        """Return the schema that events of a class are written with, registering it if it is new."""
        text = cls.schema_text(event)
        return NumberedSchema(directory.id_for(subject, cls.kind, text), text)

    @abstractmethod
    def write(self, event: E, header: bytes) -> bytes:
        """Return the message of an event."""
        ...

    @abstractmethod
    def reader(self, schema: WrittenSchema, upcasts: tuple[Upcast, ...] | None) -> Read:
        """Return a function that reads messages of a schema; without `upcasts` it is the class's own."""
        ...

    def is_own(self, schema: WrittenSchema) -> bool:
        """Whether a schema is that of the class."""
        return bool(json.loads(schema.text) == json.loads(self._text))

    def encode(self, event: E) -> bytes:
        if self._own is None:
            schema = self.numbered(self._class, self._subject, self._directory, self._upcasts)
            self._own = self.prepare(schema)
        return self.write(event, self._own)

    def prepare(self, schema: NumberedSchema) -> bytes:
        """Get ready to write; return the header of each message."""
        return _HEADER.pack(0, schema.id)

    def decode(self, data: bytes | None) -> E:
        read = self._reader(data)
        try:
            return self._revive(read(data[5:]))  # type: ignore[no-any-return, index]
        except Exception as error:
            raise unreadable(self._name, data, error) from error

    def decode_all(self, messages: Iterable[bytes | None]) -> Decoded[E]:
        """Decode many messages; most of them were written with the class's own schema."""
        revive = self._revive
        events: list[E | None] = []
        failures: dict[int, DataError] = {}
        for data in messages:
            try:
                if data is not None and data[:5] == self._own_header:
                    events.append(revive(self._own_reader(data[5:])))  # type: ignore[misc]
                else:
                    events.append(self.decode(data))
            except Exception as error:
                failures[len(events)] = self._failure(data, error)
                events.append(None)
        return Decoded(events, failures)

    def _failure(self, data: bytes | None, error: Exception) -> DataError:
        """Return the error of a malformed message; `decode` has judged already what it raises."""
        is_own = data is not None and data[:5] == self._own_header
        if not is_own and not isinstance(error, DataError):
            raise error
        return unreadable(self._name, data, error)

    def _reader(self, data: bytes | None) -> Read:
        """Return what reads a message; an error of the directory of schemas is raised as it is."""
        if data is None:
            raise unreadable(self._name, data, TypeError("no value"))
        if len(data) < 5 or data[0] != 0:
            raise DecodeError(f"{len(data)} bytes do not begin with a schema's number: {data[:5].hex(' ')}")
        id = _HEADER.unpack_from(data)[1]
        if id not in self._readers:
            schema = self._directory.written(self._subject, id)
            try:
                self._readers[id] = self._make_reader(schema, data[:5])
            except Exception as error:
                raise unreadable(self._name, data, error) from error
        return self._readers[id]

    def _make_reader(self, schema: WrittenSchema, header: bytes) -> Read:
        if schema.kind is not self.kind:
            raise DecodeError(f"the message's schema is {schema.kind}, the topic's {self.kind}")
        if not self.is_own(schema):
            return self.reader(schema, upcasts_from(schema.version, self._upcasts))
        self._own_header, self._own_reader = header, self.reader(schema, None)
        return self._own_reader


class AvroCodec(RegisteredCodec[E]):
    """Avro under Confluent's header; it has no unknown fields."""

    kind = SchemaKind.AVRO

    def __init__(
        self,
        cls: type[E],
        subject: str,
        directory: SchemaDirectory,
        upcasts: Sequence[Upcast] = (),
        unknown: Unknown = "ignore",
    ) -> None:
        super().__init__(cls, subject, directory, upcasts, unknown)
        self._schema = fastavro.parse_schema(avro_schema(cls))

    @staticmethod
    def schema_text(cls: type[Event]) -> str:
        return json.dumps(avro_schema(cls))

    def write(self, event: E, header: bytes) -> bytes:
        target = io.BytesIO()
        target.write(header)
        fastavro.schemaless_writer(target, self._schema, msgspec.to_builtins(event, builtin_types=_NATIVE))
        return target.getvalue()

    def reader(self, schema: WrittenSchema, upcasts: tuple[Upcast, ...] | None) -> Read:
        if upcasts is None:
            return self._read_own
        writer = fastavro.parse_schema(json.loads(schema.text))
        if upcasts:
            return lambda body: self._fit(_upcast(_read_avro(body, writer), upcasts))
        reader = _with_absent_defaults(fastavro.parse_schema(json.loads(self._text)))
        return lambda body: self._fit(_without_absent(_read_avro(body, writer, reader)))

    def _read_own(self, body: bytes) -> Any:
        return msgspec.convert(_read_avro(body, self._schema), self._strict, builtin_types=_NATIVE)

    def _fit(self, values: Any) -> Any:
        return msgspec.convert(values, self._lenient, builtin_types=_NATIVE)


class JsonSchemaCodec(RegisteredCodec[E]):
    """JSON under Confluent's header."""

    kind = SchemaKind.JSON

    def __init__(
        self,
        cls: type[E],
        subject: str,
        directory: SchemaDirectory,
        upcasts: Sequence[Upcast] = (),
        unknown: Unknown = "ignore",
    ) -> None:
        super().__init__(cls, subject, directory, upcasts, unknown)
        self._encode = msgspec.json.Encoder().encode
        self._decode: Read = json_reader(shape_of(cls), self._unknown)

    @staticmethod
    def schema_text(cls: type[Event]) -> str:
        return json.dumps(msgspec.json.schema(shape_of(cls).strict))

    def write(self, event: E, header: bytes) -> bytes:
        return header + self._encode(event)

    def reader(self, schema: WrittenSchema, upcasts: tuple[Upcast, ...] | None) -> Read:  # noqa: ARG002
        if upcasts is None:
            return self._decode
        return lambda body: msgspec.convert(_upcast(msgspec.json.decode(body), upcasts), self._lenient)


def _upcast(values: Any, upcasts: tuple[Upcast, ...]) -> Any:
    for each in upcasts:
        values = each.apply(values)
    return values


def _with_absent_defaults(schema: Json) -> Json:
    """Put a mark in place of every default: fastavro would give a default as its schema spells it."""
    if isinstance(schema, list):
        return [_with_absent_defaults(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _ABSENT if name == "default" else _with_absent_defaults(each) for name, each in schema.items()
    }


def _without_absent(values: Any) -> Any:
    """Leave marked fields out, so that they get the class's own default."""
    if isinstance(values, list):
        return [_without_absent(each) for each in values]
    if not isinstance(values, dict):
        return values
    return {name: _without_absent(each) for name, each in values.items() if each is not _ABSENT}


def _read_avro(body: bytes, writer: Json, reader: Json = None) -> Any:
    source = io.BytesIO(body)
    values = fastavro.schemaless_reader(source, writer, reader)
    if source.tell() != len(body):
        raise ValueError(f"{len(body) - source.tell()} bytes are left over")
    return values
