"""Codecs: an event to bytes and back, in JSON or Avro."""

import io
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar
from uuid import UUID

import fastavro
import msgspec

from penstock.errors import DecodeError
from penstock.events import Event
from penstock.schemas.avro import avro_schema
from penstock.schemas.shape import shape_of

E = TypeVar("E", bound=Event)
Format = Literal["json", "avro"]
_NATIVE = (bytes, datetime, date, Decimal, UUID)
_SINGLE_OBJECT = b"\xc3\x01"


class Decoded(NamedTuple, Generic[E]):
    """Many messages, decoded: None stands in `events` where a message failed, with its error by place."""

    events: list[E | None]
    failures: dict[int, DecodeError]


class Codec(Protocol[E]):
    """Turns events of one class into bytes and back; what can't be read raises DecodeError."""

    def encode(self, event: E) -> bytes: ...

    def decode(self, data: bytes | None) -> E: ...

    def decode_all(self, messages: Iterable[bytes | None]) -> Decoded[E]: ...


def codec_for(cls: type[E], format: Format) -> "Codec[E]":
    """Return the codec of an event class in a format."""
    return JsonCodec(cls) if format == "json" else AvroCodec(cls)


class JsonCodec(Generic[E]):
    """Compact JSON with the fields in the order of the class; unknown fields are refused, never ignored."""

    def __init__(self, cls: type[E]) -> None:
        shape = shape_of(cls)
        self._name = cls.__name__
        self.encode = msgspec.json.Encoder().encode
        self._read: Callable[[Any], Any] = msgspec.json.Decoder(shape.twin).decode
        self._revive = shape.revive

    def decode(self, data: bytes | None) -> E:
        try:
            return self._revive(self._read(data))  # type: ignore[no-any-return]
        except Exception as error:
            raise _unreadable(self._name, data, error) from error

    def decode_all(self, messages: Iterable[bytes | None]) -> Decoded[E]:
        """Decode many messages; as `decode`, with the calls of each message kept to two."""
        read, revive = self._read, self._revive
        events: list[E | None] = []
        failures: dict[int, DecodeError] = {}
        for data in messages:
            try:
                events.append(revive(read(data)))
            except Exception as error:
                failures[len(events)] = _unreadable(self._name, data, error)
                events.append(None)
        return Decoded(events, failures)


class AvroCodec(Generic[E]):
    """Avro's single-object encoding: two marker bytes, the schema's fingerprint, the event."""

    def __init__(self, cls: type[E]) -> None:
        shape = shape_of(cls)
        schema = avro_schema(cls)
        fingerprint = fastavro.schema.fingerprint(
            fastavro.schema.to_parsing_canonical_form(schema), "CRC-64-AVRO"
        )
        self._name = cls.__name__
        self._schema = fastavro.parse_schema(schema)
        self._header = _SINGLE_OBJECT + bytes.fromhex(fingerprint)
        self._twin, self._revive = shape.twin, shape.revive

    def encode(self, event: E) -> bytes:
        target = io.BytesIO()
        target.write(self._header)
        fastavro.schemaless_writer(target, self._schema, msgspec.to_builtins(event, builtin_types=_NATIVE))
        return target.getvalue()

    def decode(self, data: bytes | None) -> E:
        try:
            values = self._values(data or b"")
            return self._revive(msgspec.convert(values, self._twin, builtin_types=_NATIVE))  # type: ignore[no-any-return]
        except Exception as error:
            raise _unreadable(self._name, data, error) from error

    def decode_all(self, messages: Iterable[bytes | None]) -> Decoded[E]:
        """Decode many messages."""
        events: list[E | None] = []
        failures: dict[int, DecodeError] = {}
        for data in messages:
            try:
                events.append(self.decode(data))
            except DecodeError as error:
                failures[len(events)] = error
                events.append(None)
        return Decoded(events, failures)

    def _values(self, data: bytes) -> Any:
        if data[:10] != self._header:
            raise ValueError(f"it begins with {data[:10].hex()}, expected {self._header.hex()}")
        source = io.BytesIO(data)
        source.seek(10)
        values = fastavro.schemaless_reader(source, self._schema, None)
        if source.tell() != len(data):
            raise ValueError(f"{len(data) - source.tell()} bytes are left over")
        return values


def _unreadable(name: str, data: bytes | None, error: Exception) -> DecodeError:
    """Damaged bytes make decoders fail in any way: each of them is the message's fault, not ours."""
    if data is None:
        return DecodeError(f"a message without a value is not a {name}")
    return DecodeError(f"{len(data)} bytes are not a {name}: {error or type(error).__name__}")
