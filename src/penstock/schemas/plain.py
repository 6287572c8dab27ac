"""Messages that name their schema, decoded without a class: for people who look into a topic."""

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import fastavro

from penstock.schemas.compatibility import SchemaKind
from penstock.schemas.directory import WrittenSchema
from penstock.schemas.protobuf.decoder import plain_decoder
from penstock.schemas.protobuf.files import files_of

_HEADER = struct.Struct(">bI")
_MOST = 10_000  # schemas; anybody may make numbers up


class PlainReader:
    """Decodes Avro, JSON and Protobuf under Confluent's header by the schema that they name.

    `find` returns the schema of a number. It is asked once for each, and only if a message looks like one
    that names its schema; whatever can't be decoded is `None`.
    """

    def __init__(self, find: Callable[[int], WrittenSchema]) -> None:
        self._find = find
        self._readers: dict[int, Callable[[bytes], Any]] = {}

    def __call__(self, message: bytes) -> Any:
        """Return a message's value, or None."""
        if len(message) <= _HEADER.size or message[0] != 0:
            return None
        _, id = _HEADER.unpack_from(message)
        if id not in self._readers and len(self._readers) < _MOST:
            self._readers[id] = self._reader(id)
        try:
            return self._readers[id](message[_HEADER.size :])
        except Exception:  # whatever a stranger has written
            return None

    def _reader(self, id: int) -> Callable[[bytes], Any]:
        try:
            return self._parser(self._find(id))
        except Exception:  # no such schema, or one that refers to others
            return lambda _: None

    @staticmethod
    def _parser(schema: WrittenSchema) -> Callable[[bytes], Any]:
        if schema.kind is SchemaKind.AVRO:
            parsed = fastavro.parse_schema(json.loads(schema.text))
            return lambda body: fastavro.schemaless_reader(io.BytesIO(body), parsed)
        return json.loads if schema.kind is SchemaKind.JSON else plain_decoder(files_of(schema))
