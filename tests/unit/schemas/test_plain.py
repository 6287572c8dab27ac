"""Messages decoded by the schema that they name, without a class; anything else is left to others."""

import struct

import pytest

from penstock.errors import UnknownSchemaError
from penstock.schemas import SchemaKind, WrittenSchema
from penstock.schemas.plain import PlainReader

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'
SCHEMAS = {
    1: WrittenSchema(SchemaKind.AVRO, AVRO, 1),
    2: WrittenSchema(SchemaKind.JSON, "{}", 1),
    3: WrittenSchema(SchemaKind.PROTOBUF, 'syntax = "proto3"; message R { int32 n = 1; }', 1),
    4: WrittenSchema(SchemaKind.PROTOBUF, "", 1),
}


class Directory:
    def __init__(self):
        self.asked = []

    def __call__(self, id):
        self.asked.append(id)
        if id not in SCHEMAS:
            raise UnknownSchemaError(f"schema {id} is not there")
        return SCHEMAS[id]


def framed(id, body):
    return struct.pack(">bI", 0, id) + body


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (framed(1, b"\x0e"), {"n": 7}),
        (framed(2, b'{"n": 7}'), {"n": 7}),
        (framed(1, b"\xff\xff"), None),
        (framed(2, b"not json"), None),
        (framed(3, b"\0\x08\x07"), {"n": 7}),
        (framed(3, b"\2\2\x08\x07"), None),
        (framed(4, b"\0"), None),
        (framed(9, b"\x0e"), None),
        (b"\0\0\0\0\1", None),
        (b'{"n": 7}', None),
        (b"", None),
    ],
)
def test_what_names_its_schema_is_decoded(message, value):
    assert PlainReader(Directory())(message) == value


def test_a_schema_is_asked_for_once():
    directory = Directory()
    read = PlainReader(directory)
    for _ in range(3):
        read(framed(1, b"\x0e"))
        read(framed(9, b"\x0e"))
    assert directory.asked == [1, 9]
