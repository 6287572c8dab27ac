"""Protobuf's compatibility rule by rule, and its two forms of schema."""

import base64
from functools import cache

import pytest
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from penstock.schemas.compatibility import InvalidSchemaError, SchemaKind, parse, read_problems


@cache
def proto(body, syntax="proto3"):
    return parse(SchemaKind.PROTOBUF, f'syntax = "{syntax}";\n{body}')


def found(reader, writer, syntax="proto3", writer_syntax=None):
    problems = read_problems(proto(reader, syntax), proto(writer, writer_syntax or syntax))
    return [(problem.path, problem.rule) for problem in problems]


def order(fields):
    return f"message Order {{ {fields} }}"


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (order("int64 a = 1;"), order("int64 a = 1; string b = 2;")),
        (order("int64 a = 1; string b = 2;"), order("int64 a = 1;")),
        (order("int64 a = 1;"), order("int32 a = 1;")),
        (order("int64 a = 1;"), order("bool a = 1;")),
        (order("int64 a = 1;"), order("uint32 a = 1;")),
        (order("uint64 a = 1;"), order("uint32 a = 1;")),
        (order("sint64 a = 1;"), order("sint32 a = 1;")),
        (order("bytes a = 1;"), order("string a = 1;")),
        (order("int32 a = 1;"), order("E a = 1;") + "enum E { A = 0; }"),
        (order("E a = 1;") + "enum E { A = 0; }", order("int32 a = 1;")),
        (order("E a = 1;") + "enum E { A = 0; }", order("E a = 1;") + "enum E { A = 0; B = 1; }"),
        (order("int64 renamed = 1;"), order("int64 a = 1;")),
        (order("oneof o { int64 a = 1; }"), order("int64 a = 1;")),
        (order("int64 a = 1; int64 b = 2;"), order("oneof o { int64 a = 1; int64 b = 2; }")),
        (
            order("oneof o { int64 a = 1; int64 b = 2; int64 c = 3; }"),
            order("oneof o { int64 a = 1; int64 b = 2; }"),
        ),
        (order("optional int64 a = 1;"), order("int64 a = 1;")),
        (order("repeated int64 a = 1;"), order("repeated int32 a = 1 [packed = false];")),
        (order("map<string, int64> a = 1;"), order("map<string, int32> a = 1;")),
        (order("") + "message B {}", order("")),
        (
            order("message L { int64 p = 1; } repeated L a = 1;"),
            order("message M { int32 p = 1; } repeated M a = 1;"),
        ),
        (order("int64 v = 1; Order next = 2;"), order("int32 v = 1; Order next = 2;")),
    ],
)
def test_allowed(reader, writer):
    assert found(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        (order("string a = 1;"), order("int64 a = 1;"), [("Order.a", "field-type-changed")]),
        (order("sint32 a = 1;"), order("int32 a = 1;"), [("Order.a", "field-type-changed")]),
        (order("fixed64 a = 1;"), order("int64 a = 1;"), [("Order.a", "field-type-changed")]),
        (order("float a = 1;"), order("double a = 1;"), [("Order.a", "field-type-changed")]),
        (order("bytes a = 1;"), order("Order a = 1;"), [("Order.a", "field-type-changed")]),
        (order("int32 a = 1;"), order("int64 a = 1;"), [("Order.a", "field-range-narrowed")]),
        (order("uint32 a = 1;"), order("int32 a = 1;"), [("Order.a", "field-range-narrowed")]),
        (order("bool a = 1;"), order("int32 a = 1;"), [("Order.a", "field-range-narrowed")]),
        (order("sfixed32 a = 1;"), order("fixed32 a = 1;"), [("Order.a", "field-range-narrowed")]),
        (order("sint32 a = 1;"), order("sint64 a = 1;"), [("Order.a", "field-range-narrowed")]),
        (order("string a = 1;"), order("bytes a = 1;"), [("Order.a", "bytes-as-string")]),
        (order("repeated int64 a = 1;"), order("int64 a = 1;"), [("Order.a", "field-label-changed")]),
        (order("int64 a = 1;"), order("repeated int64 a = 1;"), [("Order.a", "field-label-changed")]),
        (order("map<string, int64> a = 1;"), order("repeated string a = 1;"), [("Order.a", "map-changed")]),
        (
            order("map<string, int64> a = 1;"),
            order("map<string, string> a = 1;"),
            [("Order.a{}.value", "field-type-changed")],
        ),
        (order("int64 a = 2;"), order("int64 a = 1;"), [("Order.a", "field-renumbered")]),
        (
            order("oneof o { int64 a = 1; int64 b = 2; }"),
            order("int64 a = 1; int64 b = 2;"),
            [("Order.b", "oneof-field-moved")],
        ),
        (
            order("oneof o { int64 a = 1; int64 b = 2; }"),
            order("int64 a = 1; oneof o { int64 b = 2; }"),
            [("Order.b", "oneof-field-moved")],
        ),
        (order(""), order("") + "message B {}", [("B", "message-removed")]),
        ("message New {}", order(""), [("New", "first-message-changed"), ("Order", "message-removed")]),
        ("message B {}" + order(""), order("") + "message B {}", [("B", "first-message-changed")]),
        ("package a;" + order(""), "package b;" + order(""), [("Order", "package-changed")]),
        (
            order("message L { string price = 1; } repeated L lines = 1;"),
            order("message L { int64 price = 1; } repeated L lines = 1;"),
            [("Order.lines[].price", "field-type-changed")],
        ),
    ],
)
def test_refused_with_the_field_and_the_rule(reader, writer, expected):
    assert found(reader, writer) == expected


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        (order("required int64 a = 1;"), order(""), [("Order.a", "required-added")]),
        (order("required int64 a = 1;"), order("optional int64 a = 1;"), [("Order.a", "required-added")]),
        (order("optional int64 a = 1;"), order("required int64 a = 1;"), []),
        (order(""), order("required int64 a = 1;"), []),
        (
            order("optional E a = 1;") + "enum E { A = 0; }",
            order("optional E a = 1;") + "enum E { A = 0; B = 1; }",
            [("Order.a", "enum-value-missing")],
        ),
        (
            order("optional E a = 1;") + "enum E { A = 0; }",
            order("optional int32 a = 1;"),
            [("Order.a", "enum-closed")],
        ),
        (
            order("optional int64 a = 1 [default = 5];"),
            order("optional int64 a = 1;"),
            [("Order.a", "default-changed")],
        ),
        (
            order("optional bool a = 1 [default = true];"),
            order("optional bool a = 1;"),
            [("Order.a", "default-changed")],
        ),
        (
            order("optional double a = 1 [default = nan];"),
            order("optional double a = 1 [default = nan];"),
            [],
        ),
        (
            order("optional group G = 1 { optional int64 x = 1; }"),
            order("optional group G = 1 { optional string x = 1; }"),
            [("Order.g.x", "field-type-changed")],
        ),
    ],
)
def test_the_second_syntax(reader, writer, expected):
    assert found(reader, writer, "proto2") == expected


def test_a_default_that_the_third_syntax_does_not_write_is_not_read_as_another():
    reader, writer = order("optional int64 a = 1 [default = 5];"), order("int64 a = 1;")
    assert found(reader, writer, "proto2", "proto3") == [("Order.a", "default-changed")]


def test_editions_are_only_compared_whole():
    text = 'edition = "2023"; message Order { int64 a = 1; }'
    one = parse(SchemaKind.PROTOBUF, text)
    other = parse(SchemaKind.PROTOBUF, text.replace("a = 1;", "a = 1; int64 b = 2;"))
    assert read_problems(one, one) == []
    assert [problem.rule for problem in read_problems(one, other)] == ["not-provable"]


TIMED = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "money.proto";
message Order { google.protobuf.Timestamp placed_at = 1; shop.Money total = 2; }
"""
MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'


def test_imports_come_as_references_and_are_looked_into():
    one = parse(SchemaKind.PROTOBUF, TIMED, {"money.proto": MONEY})
    other = parse(SchemaKind.PROTOBUF, TIMED, {"money.proto": MONEY.replace("int64", "string")})
    assert read_problems(one, one) == []
    assert [(p.path, p.rule) for p in read_problems(one, other)] == [
        ("Order.total.cents", "field-type-changed")
    ]


def as_sent(name, text, references=None):
    """A schema as Confluent's Python client sends it."""
    file = FileDescriptorProto()
    file.CopyFrom(parse(SchemaKind.PROTOBUF, text, references or {}).content.file)
    file.name = name
    for message in file.message_type:
        for field in message.field:
            field.ClearField("json_name")
    return base64.b64encode(file.SerializeToString()).decode()


def test_text_and_descriptor_are_one_schema():
    money, timed = as_sent("money.proto", MONEY), as_sent("shop/order.proto", TIMED, {"money.proto": MONEY})
    text = parse(SchemaKind.PROTOBUF, TIMED, {"money.proto": MONEY})
    for form in ({"money.proto": money}, {"money.proto": MONEY}):
        sent = parse(SchemaKind.PROTOBUF, timed, form)
        assert sent.canonical == text.canonical
        assert read_problems(sent, text) == []
    assert parse(SchemaKind.PROTOBUF, TIMED, {"money.proto": money}).canonical == text.canonical


def test_a_well_known_file_is_a_schema():
    sent = base64.b64encode(timestamp_pb2.DESCRIPTOR.serialized_pb).decode()
    assert parse(SchemaKind.PROTOBUF, sent).content.file.package == "google.protobuf"


def test_confluents_own_imports_need_not_be_sent():
    file = FileDescriptorProto(name="a.proto", syntax="proto3", dependency=["confluent/type/decimal.proto"])
    file.message_type.add(name="A").field.add(
        name="d", number=1, type=11, label=1, type_name=".confluent.type.Decimal"
    )
    schema = parse(SchemaKind.PROTOBUF, base64.b64encode(file.SerializeToString()).decode())
    assert read_problems(schema, schema) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('syntax = "proto3";\nmessage A { int32 x = 1 }', "line 2, column 25: Expected"),
        ('syntax = "proto3"; message A { Nope x = 1; }', '"Nope" is not defined'),
        ('syntax = "proto3"; import "no.proto"; message A {}', "no.proto"),
        ('syntax = "proto3";', "has no message"),
        ("abcd", "not a file descriptor"),
        ("", ".*"),
    ],
)
def test_invalid(text, message):
    with pytest.raises(InvalidSchemaError, match=message):
        parse(SchemaKind.PROTOBUF, text)


def test_an_inconsistent_descriptor_is_refused():
    file = FileDescriptorProto(name="a.proto", syntax="proto3")
    file.message_type.add(name="A").field.add(name="x", number=1, type=11, label=1, type_name=".Nope")
    with pytest.raises(InvalidSchemaError, match="inconsistent"):
        parse(SchemaKind.PROTOBUF, base64.b64encode(file.SerializeToString()).decode())


def test_a_missing_reference_of_a_descriptor_is_named():
    sent = as_sent("order.proto", TIMED, {"money.proto": MONEY})
    with pytest.raises(InvalidSchemaError, match=r"imports money\.proto are unknown"):
        parse(SchemaKind.PROTOBUF, sent)


def test_a_reference_stays_in_its_folder():
    with pytest.raises(InvalidSchemaError, match="leads out of its folder"):
        parse(SchemaKind.PROTOBUF, TIMED, {"../money.proto": MONEY})
