"""Small schemas that would ask for endless work are judged, or refused, in a moment."""

import base64
import json
import time
from contextlib import contextmanager

import pytest
from google.protobuf import timestamp_pb2

from penstock.schemas.compatibility import InvalidSchemaError, Mode, SchemaKind, check, parse

AVRO, JSON, PROTOBUF = SchemaKind
SECONDS = 8  # of the processor; without the bounds these take minutes or never end


@contextmanager
def in_a_moment():
    begun = time.process_time()
    yield
    assert time.process_time() - begun < SECONDS


def problems(kind, old, new):
    found = check(parse(kind, text(new)), [parse(kind, text(old))], Mode.BACKWARD)
    return {problem.rule for problem in found}


def text(schema):
    return schema if isinstance(schema, str) else json.dumps(schema)


def enum(count, first=0):
    return {"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(first, first + count)]}


@pytest.mark.parametrize("blanks", [" ", "\n", "a b "])
def test_a_proto_of_blanks(blanks):
    with in_a_moment(), pytest.raises(InvalidSchemaError):
        parse(PROTOBUF, blanks * 200_000 + "!")


def test_base64_may_be_broken_into_lines():
    broken = base64.encodebytes(timestamp_pb2.DESCRIPTOR.serialized_pb).decode()
    assert "\n" in broken.strip()
    assert parse(PROTOBUF, broken).canonical == parse(PROTOBUF, "".join(broken.split())).canonical


@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_a_pattern_that_backtracks(keyword):
    value = "a" * 60 + "!"
    if keyword == "pattern":
        old, new = {"const": value}, {"pattern": "^(a+)+$"}
    else:
        old = {"type": "object", "properties": {value: {"type": "string"}}, "additionalProperties": False}
        new = {"patternProperties": {"^(a+)+$": {"type": "integer"}}}
    with in_a_moment():
        assert problems(JSON, old, new) == ({"pattern-changed"} if keyword == "pattern" else set())


def test_a_pattern_still_decides():
    old = {"enum": ["ab", "abab"]}
    assert problems(JSON, old, {"pattern": "^(ab)+$"}) == set()
    assert problems(JSON, old, {"pattern": "^ab$"}) == {"pattern-changed"}
    closed = {"patternProperties": {"^x": True}, "additionalProperties": False}
    assert problems(JSON, {"const": {"x1": 1}}, closed) == set()
    assert problems(JSON, {"const": {"y1": 1}}, closed) != set()
    assert problems(JSON, {"const": {"x": 1}}, {"patternProperties": {"x": {"type": "string"}}}) != set()


@pytest.mark.parametrize("count", [4, 20, 200])
def test_alternatives_beside_each_other(count):
    old = {"allOf": [{"anyOf": [{}]} for _ in range(count)]}
    with in_a_moment():
        assert problems(JSON, old, {"not": {"minimum": 3}}) == {"not-provable"}


def test_defaults_of_records_that_hold_each_other():
    def record(name, *branches):
        fields = [{"name": "f", "type": list(branches), "default": {}}]
        return {"type": "record", "name": name, "fields": fields}

    whole = record("A", "A", record("B", "A", "B", record("C", "A", "B", "C")))
    with in_a_moment(), pytest.raises(InvalidSchemaError, match="default"):
        parse(AVRO, text(whole))


def test_defaults_that_end_are_found_behind_those_that_do_not():
    """B fits only through A, which fits only through its second branch."""
    leaf = {"type": "record", "name": "Leaf", "fields": []}
    b = {"type": "record", "name": "B", "fields": [{"name": "a", "type": ["A"], "default": {}}]}
    a = {"type": "record", "name": "A", "fields": [{"name": "x", "type": [b, leaf], "default": {}}]}
    assert parse(AVRO, text(a)).canonical


def test_a_large_enum():
    with in_a_moment():
        assert problems(AVRO, enum(250_000), enum(250_000, first=1)) == {"enum-symbol-missing"}
    twice = enum(100_000)
    twice["symbols"].append("S7")
    with in_a_moment(), pytest.raises(InvalidSchemaError, match="'S7' is given twice"):
        parse(AVRO, text(twice))


def test_a_record_of_many_fields():
    fields = [{"name": f"f{number}", "type": "long"} for number in range(20_000)]
    record = {"type": "record", "name": "R", "fields": fields}
    with in_a_moment():
        assert problems(AVRO, record, record) == set()


@pytest.mark.parametrize("size", [2_000, 200_000_000, 2**31 - 1])
def test_a_large_fixed_with_a_decimal(size):
    fixed = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", "precision": 4_000}
    with in_a_moment():
        assert parse(AVRO, text(fixed)).canonical


def test_a_fixed_larger_than_any_reader_takes():
    with pytest.raises(InvalidSchemaError, match="2147483648"):
        parse(AVRO, text({"type": "fixed", "name": "F", "size": 2**31}))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 16, 100, 1_000])
def test_a_decimal_has_room_for_its_digits(size):
    most = len(str(2 ** (8 * size - 1) - 1)) - 1
    fixed = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", "precision": most}
    parse(AVRO, text(fixed))
    with pytest.raises(InvalidSchemaError, match=f"hold {most} digits"):
        parse(AVRO, text({**fixed, "precision": most + 1}))


@pytest.mark.parametrize(
    "schema",
    [
        '{"default": %s, "type": "integer"}' % ("9" * 5_000),
        '{"minimum": 1e999}',
        '{"const": "\\ud800"}',
        "[" * 100_000,
        '{"not": ' * 10_000,
    ],
)
def test_json_that_is_no_schema(schema):
    with in_a_moment(), pytest.raises(InvalidSchemaError):
        parse(JSON, schema)


def test_a_pair_of_surrogates_is_a_character():
    assert "\N{GRINNING FACE}" in parse(JSON, r'{"const": "\ud83d\ude00"}').canonical
    assert parse(JSON, r'{"pattern": "\\ud83d"}').canonical


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a//b", "a\0b", "../x.proto", "/etc/passwd", "x" * 5_000, 'a";b', "a\nb", "a\\b"]
)
def test_odd_names_of_references(name):
    proto = 'syntax = "proto3"; message M { string id = 1; }'
    with pytest.raises(InvalidSchemaError, match="reference"):
        parse(PROTOBUF, proto, {name: proto})


def test_references_that_are_files_and_folders_at_once():
    proto = 'syntax = "proto3"; message M%s { string id = 1; }'
    with pytest.raises(InvalidSchemaError, match="reference"):
        parse(PROTOBUF, proto % "", {"a": proto % 1, "a/b": proto % 2})


def test_a_reference_may_be_called_as_the_main_file_is():
    other = 'syntax = "proto3"; message Other { string id = 1; }'
    main = 'syntax = "proto3"; import "schema.proto"; message Main { Other other = 1; }'
    assert ".Other" in parse(PROTOBUF, main, {"schema.proto": other}).content.messages
