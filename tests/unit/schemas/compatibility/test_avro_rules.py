"""Avro's resolution rule by rule."""

import json

import pytest

from penstock.schemas.compatibility import InvalidSchemaError, SchemaKind, parse, read_problems


def record(*fields, name="Order", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name, type_="long", **more):
    return {"name": name, "type": type_, **more}


def enum(*symbols, name="Color", **more):
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size, name="Hash", **more):
    return {"type": "fixed", "name": name, "size": size, **more}


def decimal(precision, scale, **more):
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale, **more}


def logical(type_, name):
    return {"type": type_, "logicalType": name}


def array(items):
    return {"type": "array", "items": items}


def map_of(values):
    return {"type": "map", "values": values}


def avro(schema, **references):
    texts = {name: json.dumps(other) for name, other in references.items()}
    return parse(SchemaKind.AVRO, json.dumps(schema), texts)


def found(reader, writer):
    return [(problem.path, problem.rule) for problem in read_problems(avro(reader), avro(writer))]


PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
PROMOTED = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
}


@pytest.mark.parametrize("writer", PRIMITIVES)
@pytest.mark.parametrize("reader", PRIMITIVES)
def test_primitives_are_promoted_as_specified(reader, writer):
    allowed = reader == writer or (writer, reader) in PROMOTED
    rule = "bytes-as-string" if (writer, reader) == ("bytes", "string") else "type-mismatch"
    assert found(reader, writer) == ([] if allowed else [("", rule)])


LINE = record(field("price"), name="Line")
NEW_LINE = record(field("price"), field("count", "int"), name="Line")
TREE = record(field("value", "int"), field("next", ["null", "Node"]), name="Node")


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (record(field("a", default=1)), record()),
        (record(), record(field("a"))),
        (record(field("a"), field("b")), record(field("b"), field("a"))),
        (record(field("b", aliases=["a"])), record(field("a"))),
        (record(name="New", aliases=["Order"]), record()),
        (record(name="New", namespace="shop", aliases=["Order"]), record(namespace="shop")),
        (record(namespace="new"), record(namespace="old")),
        (record(field("a", ["null", "long"], default=None)), record()),
        (record(field("a", ["null", "long"], default=5)), record()),
        (enum("A", "B"), enum("A")),
        (enum("A", default="A"), enum("A", "B")),
        (enum("A", name="New", aliases=["Color"]), enum("A")),
        (fixed(4, name="New", aliases=["Hash"]), fixed(4)),
        (["null", "long"], "int"),
        (["null", "long"], ["int", "null"]),
        ("long", ["long"]),
        ("double", ["int", "long", "float"]),
        (["null", fixed(4)], fixed(4)),
        (array("double"), array("int")),
        (map_of(["null", "string"]), map_of("string")),
        (
            record(field("value", "long"), field("next", ["null", "Node"]), name="Node"),
            TREE,
        ),
        (decimal(12, 2), decimal(10, 2)),
        (
            {**fixed(8), **logical("fixed", "decimal"), "precision": 9},
            {**fixed(8), **logical("fixed", "decimal"), "precision": 9},
        ),
        ("long", logical("long", "timestamp-micros")),
        (logical("long", "timestamp-micros"), "long"),
        (logical("long", "timestamp-micros"), logical("long", "timestamp-micros")),
        ("string", logical("string", "uuid")),
        (logical("string", "made-up"), "string"),
        (logical("string", "date"), logical("string", "uuid")),
        (["bytes", "string"], ["bytes", "string"]),
    ],
)
def test_allowed(reader, writer):
    assert found(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        (record(field("a")), record(), [("Order.a", "reader-field-missing-default")]),
        (record(field("b")), record(field("a")), [("Order.b", "reader-field-missing-default")]),
        (record(field("a", "int")), record(field("a")), [("Order.a", "type-mismatch")]),
        (
            record(field("lines", array(NEW_LINE))),
            record(field("lines", array(LINE))),
            [("Order.lines[].count", "reader-field-missing-default")],
        ),
        (
            record(field("by", map_of(NEW_LINE))),
            record(field("by", map_of(LINE))),
            [("Order.by{}.count", "reader-field-missing-default")],
        ),
        (record(name="New"), record(), [("New", "name-mismatch")]),
        (record(name="New", aliases=["x.Order"]), record(), [("New", "name-mismatch")]),
        (enum("A", name="New"), enum("A"), [("New", "name-mismatch")]),
        (fixed(4, name="New"), fixed(4), [("New", "name-mismatch")]),
        (enum("A"), enum("A", "B", "C"), [("Color", "enum-symbol-missing")]),
        (fixed(4), fixed(5), [("Hash", "fixed-size-changed")]),
        (["null", "long"], "string", [("", "union-branch-missing")]),
        (["null", "long"], ["null", "long", "string"], [("", "union-branch-missing")]),
        ("long", ["null", "long"], [("", "type-mismatch")]),
        (["null", record(field("a"))], record(), [(".a", "reader-field-missing-default")]),
        (["null", fixed(4)], fixed(5), [("", "union-branch-missing")]),
        (["string", "bytes"], "bytes", [("", "bytes-as-string")]),
        (enum("A", name="X"), record(name="X"), [("X", "type-mismatch")]),
        (
            record(field("b", aliases=["a"]), field("a")),
            record(field("a")),
            [("Order.b", "field-alias-ambiguous"), ("Order.a", "field-alias-ambiguous")],
        ),
        (
            record(field("b", aliases=["a"])),
            record(field("a"), field("b")),
            [("Order.b", "field-alias-ambiguous")],
        ),
        (
            record(field("value", "string"), field("next", ["null", "Node"]), name="Node"),
            TREE,
            [("Node.value", "type-mismatch")],
        ),
        (decimal(10, 3), decimal(10, 2), [("", "decimal-scale-changed")]),
        (decimal(8, 2), decimal(10, 2), [("", "decimal-precision-narrowed")]),
        ("bytes", decimal(8, 2), [("", "logical-type-changed")]),
        (decimal(8, 2), "bytes", [("", "logical-type-changed")]),
        (logical("string", "uuid"), "string", [("", "logical-type-changed")]),
        (
            logical("long", "timestamp-millis"),
            logical("long", "timestamp-micros"),
            [("", "logical-type-changed")],
        ),
        (logical("long", "timestamp-millis"), logical("int", "date"), [("", "logical-type-changed")]),
        (record(namespace="a"), array("int"), [("Order", "type-mismatch")]),
    ],
)
def test_refused_with_the_field_and_the_rule(reader, writer, expected):
    assert found(reader, writer) == expected


def test_java_and_the_specification_choose_different_branches_so_both_must_work():
    writer = record(name="X", namespace="b")
    reader = [record(field("a"), name="X", namespace="a"), record(name="X", namespace="b")]
    assert found(reader, writer) == [(".a", "reader-field-missing-default")]


def test_the_message_says_what_to_do():
    (problem,) = read_problems(avro(record(field("a"))), avro(record()))
    assert problem.message == (
        "the reader's field 'a' is not in the writer's record Order and has no default; "
        "give the field a default"
    )


@pytest.mark.parametrize(
    ("schema", "where", "message"),
    [
        (5, "", "5 is not a type"),
        ("Nope", "", "unknown type 'Nope'"),
        ({"type": "record", "fields": []}, "", "name None"),
        (record(name="1x"), "", "'1x' is not a part of a name"),
        ({"type": "record", "name": "A"}, "A", "`fields` is missing"),
        (record(field("a"), field("a")), "Order", "field 'a' is given twice"),
        (record(5), "Order", "5 is not a field"),
        (record({"name": "a"}), "Order.a", "`type` is missing"),
        (record(field("a", default="x")), "Order.a", "default 'x' is not a value of long"),
        (record(field("a", "int", default=2**31)), "Order.a", "default"),
        (record(field("a", "boolean", default=1)), "Order.a", "default"),
        (record(field("a", "Order", default={})), "Order.a", "default"),
        (record(field("a", fixed(2), default="abc")), "Order.a", "default"),
        (record(field("a", enum("A"), default="B")), "Order.a", "default"),
        (record(field("a", array("int"), default=["x"])), "Order.a", "default"),
        (enum("A", "A"), "Color", "symbol 'A' is given twice"),
        (enum("A", default="B"), "Color", "default 'B' is not a symbol"),
        (enum("a b"), "Color", "'a b' is not a symbol"),
        (fixed(-1), "Hash", "a fixed of size -1"),
        (["int", "int"], "", "'int' twice"),
        (["int", ["null"]], "", "union directly inside"),
        ({"type": "array"}, "", "`items` is missing"),
        ({"type": ["null"]}, "", "an object of type"),
        (record(field("a", enum("A")), field("b", enum("B"))), "Order.b", "'Color' is defined twice"),
        (decimal(0, 0), "", "precision 0"),
        (decimal(2, 3), "", "scale 3"),
        ({**fixed(2), "logicalType": "decimal", "precision": 5}, "Hash", "a decimal of 5 digits"),
    ],
)
def test_invalid(schema, where, message):
    with pytest.raises(InvalidSchemaError, match=message) as caught:
        avro(schema)
    assert caught.value.where == where


def test_references_may_come_in_any_order():
    order = record(field("lines", array("shop.Line")), namespace="shop")
    line = record(field("money", "shop.Money"), name="Line", namespace="shop")
    money = record(field("cents"), name="Money", namespace="shop")
    new = avro(order, **{"shop.Line": line, "shop.Money": money})
    old = avro(order, **{"shop.Money": {**money, "fields": []}, "shop.Line": line})
    assert [problem.path for problem in read_problems(new, old)] == ["Order.lines[].money.cents"]


def test_a_broken_reference_is_named():
    with pytest.raises(InvalidSchemaError, match=r"reference 'shop\.Line': Line\.a: unknown type 'Nope'"):
        avro("shop.Line", **{"shop.Line": record(field("a", "Nope"), name="Line", namespace="shop")})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "string"}, "string"),
        (record(name="shop.Order"), record(namespace="shop")),
        (record(field("a"), doc="x"), {"doc": "x", **record({"type": {"type": "long"}, "name": "a"})}),
        (
            record(field("a", enum("A")), field("b", "Color"), namespace="shop"),
            record(field("a", enum("A", name="shop.Color")), field("b", "shop.Color"), name="shop.Order"),
        ),
    ],
)
def test_equal_schemas_have_one_canonical_form(one, other):
    assert avro(one).canonical == avro(other).canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (record(doc="x"), record(doc="y")),
        (record(field("a"), field("b")), record(field("b"), field("a"))),
        (record(field("a", default=1)), record(field("a"))),
        (record(name="a.Order"), record(name="b.Order")),
    ],
)
def test_differing_schemas_have_differing_canonical_forms(one, other):
    assert avro(one).canonical != avro(other).canonical
