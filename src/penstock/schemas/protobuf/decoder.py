"""Bodies of messages, decoded; what does it can be sent to a process that has no compiler."""

from collections.abc import Callable
from typing import Any

import msgspec

from penstock.errors import DecodeError
from penstock.events import fields_of
from penstock.schemas.codec import Unknown
from penstock.schemas.protobuf.coercion import NATIVE, coercer
from penstock.schemas.protobuf.files import Files
from penstock.schemas.protobuf.values import Read, reader
from penstock.schemas.protobuf.wire import split_indexes
from penstock.schemas.shape import shape_of
from penstock.schemas.upcasting import Upcast


def plain_decoder(files: Files) -> Callable[[bytes], Any]:
    """Return a function that reads bodies of one schema as plain values."""

    def decode(body: bytes) -> Any:
        path, message = split_indexes(body)
        type = files.message(path)
        return reader(type.DESCRIPTOR)(type.FromString(message))

    return decode


class Decoder:
    """Reads bodies of one schema, upcast where they have to be, into the shape of a class.

    `unknown` says what becomes of a message with numbers that its schema does not have.
    """

    def __init__(
        self, cls: type, files: Files, upcasts: tuple[Upcast, ...] = (), unknown: Unknown = "ignore"
    ) -> None:
        self._class, self._files, self._upcasts, self._unknown = cls, files, upcasts, unknown
        self._readers: dict[tuple[int, ...], Read] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Decoder, (self._class, self._files, self._upcasts, self._unknown)

    def __call__(self, body: bytes) -> Any:
        path, message = split_indexes(body)
        if path not in self._readers:
            self._readers[path] = self._reader(path)
        return self._readers[path](message)

    def _reader(self, path: tuple[int, ...]) -> Read:
        type, coerced, twin = self._files.message(path), coercer(self._class), shape_of(self._class).lenient
        parse = type.FromString if self._unknown == "ignore" else _strict(type)
        wanted = None if self._upcasts else {field.name for field in fields_of(self._class)}
        values_of = reader(type.DESCRIPTOR, wanted)

        def read(message: bytes) -> Any:
            values = values_of(parse(message))
            for upcast in self._upcasts:
                values = upcast.apply(values)
            return msgspec.convert(coerced(values), twin, builtin_types=NATIVE)

        return read


def _strict(type: type[Any]) -> Read:
    """Return what parses messages, and refuses those with unknown fields, in messages inside of them too."""

    def parse(data: bytes) -> Any:
        message = type.FromString(data)
        size = message.ByteSize()
        message.DiscardUnknownFields()
        if message.ByteSize() != size:
            raise DecodeError("it has fields that its schema does not have")
        return message

    return parse
