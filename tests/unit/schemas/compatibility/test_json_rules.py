"""JSON Schema's compatibility rule by rule."""

import json

import pytest

from penstock.schemas.compatibility import InvalidSchemaError, SchemaKind, parse, read_problems

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def schema(value, **references):
    texts = {name: json.dumps(other) for name, other in references.items()}
    return parse(SchemaKind.JSON, json.dumps(value), texts)


def found(reader, writer):
    return [(problem.path, problem.rule) for problem in read_problems(schema(reader), schema(writer))]


def obj(properties=None, *, required=(), **more):
    result = {"type": "object", "properties": properties or {}, **more}
    return {**result, "required": list(required)} if required else result


def closed(properties=None, **more):
    return obj(properties, additionalProperties=False, **more)


INTEGER, NUMBER, STRING, NULL = ({"type": name} for name in ("integer", "number", "string", "null"))
CAT = obj({"kind": {"const": "cat"}, "lives": INTEGER}, required=["kind"])
DOG = obj({"kind": {"const": "dog"}, "walks": INTEGER}, required=["kind"])
TREE = {**closed({"value": INTEGER, "next": {"$ref": "#"}}, required=["value"])}


def tree(value, **more):
    return {
        "$ref": "#/definitions/t",
        "definitions": {"t": closed({"v": value, "n": {"$ref": "#/definitions/t"}})},
        **more,
    }


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (True, STRING),
        ({}, STRING),
        (STRING, False),
        (NUMBER, INTEGER),
        ({"type": ["string", "null"]}, STRING),
        ({"type": ["string", "integer"]}, {"enum": ["a", 1, 2.0]}),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}),
        ({"enum": ["a", "b"]}, {"const": "a"}),
        ({"const": 1}, {"enum": [1.0]}),
        ({"enum": [True, False, None]}, {"type": ["boolean", "null"]}),
        ({"type": "integer", "minimum": 1}, {"type": "integer", "exclusiveMinimum": 0}),
        ({"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 5, "minimum": 2}),
        ({"exclusiveMaximum": 9}, {"exclusiveMaximum": 9}),
        ({"minimum": 3}, STRING),
        ({"multipleOf": 3}, {"multipleOf": 6}),
        ({"multipleOf": 1}, INTEGER),
        ({"maxLength": 9}, {"maxLength": 5}),
        ({"minLength": 1}, {"minLength": 2}),
        ({"pattern": "^a"}, {"pattern": "^a", "maxLength": 5}),
        ({"pattern": "^a"}, {"enum": ["ab", "ac"]}),
        ({"format": "date"}, {"format": "date", "maxLength": 5}),
        (closed({"a": STRING, "b": INTEGER}), closed({"a": STRING})),
        (obj({"a": STRING}), obj({"a": STRING, "b": INTEGER})),
        (obj({"a": STRING, "b": {}}), obj({"a": STRING})),
        (obj({"a": STRING}), closed({"a": STRING})),
        (obj(additionalProperties=NUMBER), obj({"a": INTEGER}, additionalProperties=INTEGER)),
        (obj({"a": STRING}), obj({"a": STRING}, required=["a"])),
        (obj({"a": NUMBER}), obj(additionalProperties=INTEGER)),
        (obj(patternProperties={"^x": NUMBER}), closed({"a": STRING, "x1": INTEGER})),
        (obj(patternProperties={"^x": NUMBER}), obj(patternProperties={"^x": INTEGER})),
        (closed(patternProperties={"^x": NUMBER}), closed(patternProperties={"^x": INTEGER})),
        (obj({"x1": NUMBER}), obj(patternProperties={"^x": INTEGER})),
        ({"minProperties": 1}, obj({}, required=["a"])),
        ({"maxProperties": 2}, closed({"a": STRING})),
        ({"items": NUMBER}, {"type": "array", "items": INTEGER}),
        ({"items": NUMBER}, {"type": "array", "maxItems": 0}),
        ({"minItems": 1, "maxItems": 9}, {"type": "array", "minItems": 2, "maxItems": 3}),
        ({"uniqueItems": True}, {"type": "array", "uniqueItems": True}),
        ({"uniqueItems": True}, {"type": "array", "maxItems": 1}),
        (
            {"items": [NUMBER, STRING]},
            {"type": "array", "items": [INTEGER, STRING], "additionalItems": False},
        ),
        (
            {"$schema": DRAFT_2020, "prefixItems": [NUMBER]},
            {"$schema": DRAFT_2020, "type": "array", "items": INTEGER},
        ),
        ({"anyOf": [STRING, NULL]}, STRING),
        ({"anyOf": [STRING, NULL]}, {"type": ["string", "null"]}),
        ({"anyOf": [STRING, NULL]}, {"oneOf": [NULL, STRING]}),
        ({"anyOf": [NUMBER, STRING, NULL]}, {"anyOf": [STRING, INTEGER]}),
        ({"oneOf": [NUMBER, STRING]}, INTEGER),
        ({"oneOf": [CAT, DOG]}, CAT),
        ({"oneOf": [CAT, DOG, NULL]}, {"oneOf": [CAT, DOG]}),
        (
            {"oneOf": [{"maximum": 0, "type": "number"}, {"type": "number", "minimum": 1}]},
            {"type": "integer", "minimum": 3},
        ),
        (
            {"oneOf": [{"minimum": 5}, {"maximum": 7}], "title": "new"},
            {"oneOf": [{"minimum": 5}, {"maximum": 7}]},
        ),
        ({"allOf": [obj({"a": NUMBER}), obj({"b": STRING})]}, obj({"a": INTEGER, "b": STRING})),
        (obj({"a": NUMBER, "b": STRING}), {"allOf": [obj({"a": INTEGER}), obj({"b": STRING})]}),
        ({"not": STRING}, NUMBER),
        (obj({"a": {"if": {"title": "x", **STRING}}}), obj({"a": {"description": "y", "if": STRING}})),
        ({"if": STRING, "then": {"minLength": 1}, "title": "x"}, {"if": STRING, "then": {"minLength": 1}}),
        (tree(NUMBER), tree(INTEGER)),
        (closed({"value": NUMBER, "next": {"$ref": "#"}}), TREE),
        ({"$schema": DRAFT_07, **NUMBER}, INTEGER),
        (obj({"a": {"title": "x", "javaType": "y", **STRING}}), obj({"a": STRING})),
        (obj({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": NUMBER}}), obj({"a": INTEGER})),
        (
            obj({"a": {"not": {"$ref": "#/$defs/A"}}, "b": NUMBER}, **{"$defs": {"A": STRING}}),
            obj({"a": {"not": {"$ref": "#/$defs/A"}}, "b": INTEGER}, **{"$defs": {"A": STRING}}),
        ),
    ],
)
def test_allowed(reader, writer):
    assert found(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        (INTEGER, NUMBER, [("$", "type-narrowed")]),
        (STRING, {"type": ["string", "null"]}, [("$", "type-narrowed")]),
        (STRING, {}, [("$", "type-narrowed")]),
        (False, STRING, [("$", "nothing-allowed")]),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, [("$", "enum-narrowed")]),
        ({"enum": ["a"]}, STRING, [("$", "enum-narrowed")]),
        ({"enum": [1]}, {"const": True}, [("$", "enum-narrowed")]),
        ({"const": "a"}, {"const": "b"}, [("$", "const-changed")]),
        ({"minimum": 3}, {"type": "number", "minimum": 2}, [("$", "minimum-raised")]),
        ({"minimum": 3}, NUMBER, [("$", "minimum-raised")]),
        ({"exclusiveMinimum": 3}, {"type": "number", "minimum": 3}, [("$", "minimum-raised")]),
        ({"maximum": 3}, {"type": "number", "maximum": 4}, [("$", "maximum-lowered")]),
        ({"exclusiveMaximum": 3}, {"type": "integer", "maximum": 3}, [("$", "maximum-lowered")]),
        ({"multipleOf": 4}, {"type": "integer", "multipleOf": 6}, [("$", "multiple-of-changed")]),
        ({"minLength": 2}, {"type": "string", "minLength": 1}, [("$", "min-length-raised")]),
        ({"maxLength": 2}, {"type": "string", "maxLength": 3}, [("$", "max-length-lowered")]),
        ({"maxLength": 2}, STRING, [("$", "max-length-lowered")]),
        ({"pattern": "^a"}, {"type": "string", "pattern": "^b"}, [("$", "pattern-changed")]),
        ({"format": "date"}, STRING, [("$", "format-changed")]),
        (obj({"a": STRING}, required=["a"]), obj({"a": STRING}), [("$.a", "required-added")]),
        (
            obj({"a": {"default": "x", **STRING}}, required=["a"]),
            obj({"a": STRING}),
            [("$.a", "required-added")],
        ),
        (obj({"a": STRING, "b": INTEGER}), obj({"a": STRING}), [("$.b", "property-added-to-open-content")]),
        (
            closed({"a": STRING}),
            closed({"a": STRING, "b": INTEGER}),
            [("$.b", "property-removed-from-closed-content")],
        ),
        (closed({"a": STRING}), obj({"a": STRING}), [("$", "content-closed")]),
        (
            obj({}, additionalProperties=INTEGER),
            obj({}, additionalProperties=NUMBER),
            [("$.*", "type-narrowed")],
        ),
        (
            obj({"lines": {"items": obj({"price": INTEGER})}}, title="Order"),
            obj({"lines": {"type": "array", "items": obj({"price": NUMBER})}}),
            [("Order.lines[].price", "type-narrowed")],
        ),
        (
            obj(patternProperties={"^x": INTEGER}),
            obj({"x1": STRING}, additionalProperties=False),
            [("$.x1", "type-narrowed")],
        ),
        ({"minProperties": 2}, obj({}, required=["a"]), [("$", "min-properties-raised")]),
        ({"maxProperties": 2}, obj(), [("$", "max-properties-lowered")]),
        ({"items": INTEGER}, {"type": "array", "items": NUMBER}, [("$[]", "type-narrowed")]),
        ({"minItems": 2}, {"type": "array"}, [("$", "min-items-raised")]),
        ({"maxItems": 2}, {"type": "array", "maxItems": 3}, [("$", "max-items-lowered")]),
        ({"uniqueItems": True}, {"type": "array"}, [("$", "unique-items-added")]),
        (
            {"items": [INTEGER, STRING]},
            {"type": "array", "items": [INTEGER, INTEGER]},
            [("$[1]", "type-narrowed")],
        ),
        (
            {"items": [INTEGER], "additionalItems": False},
            {"type": "array", "items": [INTEGER]},
            [("$[]", "nothing-allowed")],
        ),
        ({"anyOf": [STRING, NULL]}, INTEGER, [("$", "not-provable")]),
        ({"anyOf": [{"type": "string", "maxLength": 2}, NULL]}, STRING, [("$", "max-length-lowered")]),
        ({"anyOf": [STRING, NULL]}, {"anyOf": [STRING, NULL, INTEGER]}, [("$", "not-provable")]),
        ({"oneOf": [NUMBER, INTEGER]}, INTEGER, [("$", "not-provable")]),
        ({"oneOf": [obj({"a": STRING}), obj({"b": STRING})]}, obj({"a": STRING}), [("$", "not-provable")]),
        (STRING, {"anyOf": [STRING, NULL]}, [("$", "type-narrowed")]),
        ({"allOf": [STRING, {"maxLength": 3}]}, STRING, [("$", "max-length-lowered")]),
        ({"not": STRING}, {"type": ["string", "null"]}, [("$", "not-provable")]),
        (
            {"if": STRING, "then": {"minLength": 1}},
            {"if": STRING, "then": {"minLength": 2}},
            [("$", "not-provable")],
        ),
        ({"contains": STRING}, {"type": "array", "contains": INTEGER}, [("$", "not-provable")]),
        ({"propertyNames": {"maxLength": 3}}, obj(), [("$", "not-provable")]),
        ({"dependentRequired": {"a": ["b"]}}, obj(), [("$", "not-provable")]),
        (obj({"a": STRING}, unevaluatedProperties=False), obj({"a": STRING}), [("$", "not-provable")]),
        (tree(INTEGER), tree(NUMBER), [("$.v", "type-narrowed")]),
        ({"$schema": DRAFT_2020}, {"$schema": DRAFT_07}, [("$", "dialect-changed")]),
        ({"$defs": {"a": {"$id": "x"}}}, STRING, [("$", "not-provable")]),
        ({"$ref": "#"}, STRING, [("$", "not-provable")]),
        ({"allOf": [{"$ref": "#"}]}, STRING, [("$", "not-provable")]),
    ],
)
def test_refused_with_the_place_and_the_rule(reader, writer, expected):
    assert found(reader, writer) == expected


def test_beside_a_reference_only_2020_12_counts_what_a_writer_says():
    beside = {"$ref": "#/definitions/a", "maxLength": 3, "definitions": {"a": STRING}}
    reader = {"type": "string", "maxLength": 3}
    assert found(reader, {"$schema": DRAFT_07, **beside}) == [("$", "max-length-lowered")]
    assert found(reader, {"$schema": DRAFT_2020, **beside}) == []


def test_what_a_name_refers_to_decides_even_if_the_text_is_the_same():
    one = obj({"a": {"not": {"$ref": "#/$defs/A"}}}, **{"$defs": {"A": STRING}})
    other = obj({"a": {"not": {"$ref": "#/$defs/A"}}}, **{"$defs": {"A": INTEGER}})
    assert found(one, other) == [("$.a", "not-provable")]


def test_references_to_other_documents():
    order = obj({"money": {"$ref": "money.json"}, "tax": {"$ref": "money.json#/definitions/tax"}})
    old = schema(order, **{"money.json": {**INTEGER, "definitions": {"tax": INTEGER}}})
    new = schema(order, **{"money.json": {**NUMBER, "definitions": {"tax": STRING}}})
    assert [(problem.path, problem.rule) for problem in read_problems(new, old)] == [
        ("$.tax", "type-narrowed")
    ]


def test_the_message_says_what_was_seen_and_what_to_do():
    (problem,) = read_problems(schema({"enum": ["a"]}), schema({"enum": ["a", "b"]}))
    assert problem.message == (
        'the writer allows "b", the reader does not; '
        "add the writer's values to the reader's enum, or drop it"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "is not a schema"),
        ({"type": "strin"}, "is not valid"),
        ({"properties": {"a": {"minLength": "x"}}}, r"\$\.properties\.a\.minLength: 'x'"),
        ({"$schema": "http://example.com/mine"}, "unknown draft"),
        ({"$ref": "#/definitions/a"}, "leads to no schema"),
        ({"$ref": "other.json"}, "'other.json' is unknown"),
        ({"$ref": "#/x", "x": {"type": 5}}, "5 is not valid"),
        ({"$schema": DRAFT_2020, "items": [STRING]}, "is not of type"),
    ],
)
def test_invalid(value, message):
    with pytest.raises(InvalidSchemaError, match=message):
        schema(value)


def test_the_order_of_attributes_does_not_count_in_the_canonical_form():
    one, other = '{"type": "object", "minProperties": 1.0}', '{"minProperties":1,"type":"object"}'
    assert parse(SchemaKind.JSON, one).canonical == parse(SchemaKind.JSON, other).canonical
