"""Codecs: an event to bytes and back."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

import msgspec

from penstock.errors import DataError, DecodeError, TryAgainError
from penstock.events import Event
from penstock.schemas.shape import Shape, shape_of

E = TypeVar("E", bound=Event)
Format = Literal["json", "avro", "json-schema", "protobuf", "debezium-json", "debezium-avro"]
"""How a topic's events are spelled as bytes."""
FORMATS: tuple[Format, ...] = get_args(Format)
_NOT_THE_DATA = (TryAgainError, OSError, MemoryError)
Unknown = Literal["ignore", "refuse"]
UNKNOWN: tuple[Unknown, ...] = ("ignore", "refuse")


class Decoded(NamedTuple, Generic[E]):
    """Many messages, decoded: None stands in `events` where a message failed, with its error by place."""

    events: list[E | None]
    failures: dict[int, DataError]


class Codec(Protocol[E]):
    """Turns events of one class into bytes and back; malformed bytes raise a DataError.

    What is not the message's fault, such as a registry that can't be reached, is raised as it is: the same
    bytes can be decoded later.
    """

    def encode(self, event: E) -> bytes: ...

    def decode(self, data: bytes | None) -> E: ...

    def decode_all(self, messages: Iterable[bytes | None]) -> Decoded[E]: ...


class JsonCodec(Generic[E]):
    """Compact JSON with the fields in the order of the class.

    `unknown` says what becomes of a message with fields that the class does not have: "ignore" them, or
    "refuse" the message.
    """

    def __init__(self, cls: type[E], unknown: Unknown = "ignore") -> None:
        shape = shape_of(cls)
        self._name = cls.__name__
        self.encode = msgspec.json.Encoder().encode
        self._read = json_reader(shape, unknown)
        self._revive = shape.revive

    def decode(self, data: bytes | None) -> E:
        try:
            return self._revive(self._read(data))  # type: ignore[no-any-return]
        except Exception as error:
            raise unreadable(self._name, data, error) from error

    def decode_all(self, messages: Iterable[bytes | None]) -> Decoded[E]:
        """Decode many messages; as `decode`, with the calls of each message kept to two."""
        read, revive = self._read, self._revive
        events: list[E | None] = []
        failures: dict[int, DataError] = {}
        for data in messages:
            try:
                events.append(revive(read(data)))
            except Exception as error:
                failures[len(events)] = unreadable(self._name, data, error)
                events.append(None)
        return Decoded(events, failures)


def json_reader(shape: Shape, unknown: Unknown) -> Callable[[Any], Any]:
    """Return a function that reads JSON into a shape.

    What is skipped msgspec takes for UTF-8 unseen, so that it gets text where fields are ignored.
    """
    if unknown == "refuse":
        return msgspec.json.Decoder(shape.strict).decode
    read: Callable[[str], Any] = msgspec.json.Decoder(shape.lenient).decode
    return lambda data: read(data.decode())


def unreadable(name: str, data: bytes | None, error: Exception) -> DataError:
    """Return the error of malformed bytes, which make decoders fail in any way; raise what may pass."""
    if isinstance(error, _NOT_THE_DATA):
        raise error
    if isinstance(error, DataError):
        return error
    if data is None:
        return DecodeError(f"a message without a value is not a {name}")
    return DecodeError(f"{len(data)} bytes are not a {name}: {error or type(error).__name__}")
