"""Random JSON Schemas, random changes to them, and documents that try to distinguish two schemas."""

import copy

from hypothesis import strategies as st

NAMES = ["a", "b", "x1"]
SCALARS = [None, True, False, 0, 1, 1.0, 2, 2.5, -3, 7, "", "a", "ab", "x1", "a\n"]
PATTERNS = ["^a", "^x", "b$"]
TYPES = ["null", "boolean", "integer", "number", "string", "object", "array"]


def keyword_values(inner):
    """What each keyword may hold."""
    count = st.integers(0, 3)
    number = st.sampled_from([-3, 0, 1, 2, 2.5, 7])
    some = st.lists(st.sampled_from(NAMES), unique=True, max_size=2)
    return {
        "type": st.one_of(
            st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
        ),
        "enum": st.lists(st.sampled_from(SCALARS), min_size=1, max_size=3),
        "const": st.sampled_from(SCALARS),
        "minimum": number,
        "maximum": number,
        "exclusiveMinimum": number,
        "exclusiveMaximum": number,
        "multipleOf": st.sampled_from([1, 2, 4, 0.5]),
        "minLength": count,
        "maxLength": count,
        "pattern": st.sampled_from(PATTERNS),
        "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
        "additionalProperties": st.one_of(st.just(False), inner),
        "required": some,
        "minProperties": count,
        "maxProperties": count,
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minItems": count,
        "maxItems": count,
        "uniqueItems": st.booleans(),
        "contains": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "not": inner,
        "if": inner,
        "then": inner,
        "propertyNames": st.just({"maxLength": 1}),
        "$ref": st.sampled_from(["#/definitions/d", "#/definitions/e", "#"]),
    }


COMMON = {
    "string": ["minLength", "maxLength", "pattern", "enum", "const"],
    "integer": ["minimum", "maximum", "exclusiveMinimum", "multipleOf", "enum"],
    "number": ["minimum", "maximum", "exclusiveMaximum", "multipleOf"],
    "object": [
        "properties",
        "properties",
        "additionalProperties",
        "required",
        "patternProperties",
        "maxProperties",
    ],
    "array": ["items", "items", "minItems", "maxItems", "uniqueItems", "prefixItems"],
}


@st.composite
def schemas(draw, depth=2):
    """A schema: mostly of one type with the keywords that suit it, now and then anything at all."""
    inner = (
        schemas(depth - 1)
        if depth
        else st.sampled_from([True, False, {}, {"type": "string"}, {"type": "integer"}])
    )
    values = keyword_values(inner)
    style = draw(st.integers(0, 9))
    if style == 0:
        return draw(st.sampled_from([True, False, {}]))
    if style <= 2:
        keywords = draw(st.lists(st.sampled_from(sorted(values)), max_size=3, unique=True))
        return {keyword: draw(values[keyword]) for keyword in keywords}
    if style == 3 and depth:
        return {
            draw(st.sampled_from(["anyOf", "oneOf", "allOf"])): draw(st.lists(inner, min_size=1, max_size=3))
        }
    kind = draw(st.sampled_from(sorted(COMMON) if depth else ["string", "integer", "number"]))
    keywords = draw(st.lists(st.sampled_from(COMMON[kind]), max_size=3))
    return {"type": kind, **{keyword: draw(values[keyword]) for keyword in keywords}}


@st.composite
def roots(draw):
    root = draw(schemas(2).filter(lambda schema: isinstance(schema, dict)))
    definitions = {"d": draw(schemas(1)), "e": draw(schemas(1))}
    dialect = draw(st.sampled_from([{}, {"$schema": "https://json-schema.org/draft/2020-12/schema"}]))
    return {**root, "definitions": definitions, **dialect}


def places(node, found=None):
    """Every schema object inside, itself included."""
    found = [] if found is None else found
    if isinstance(node, dict):
        found.append(node)
        for keyword, value in node.items():
            if keyword in ("properties", "patternProperties", "definitions"):
                for inner in value.values():
                    places(inner, found)
            elif keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
                for inner in value:
                    places(inner, found)
            elif keyword in ("items", "additionalProperties", "contains", "not", "if", "then"):
                places(value, found)
    return found


@st.composite
def changes(draw, schema):
    """The schema after one or two keywords were set, dropped or moved a little."""
    changed = copy.deepcopy(schema)
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from(places(changed)))
        own = [keyword for keyword in place if keyword not in ("definitions", "$schema")]
        values = keyword_values(schemas(1))
        what = draw(st.sampled_from(["drop", "move", "move", "set", "grow"]))
        if what == "drop" and own:
            del place[draw(st.sampled_from(own))]
        elif what == "move" and own:
            keyword = draw(st.sampled_from(own))
            place[keyword] = draw(values[keyword])
        elif what == "grow" and own:
            grow(draw, place, draw(st.sampled_from(own)))
        else:
            keyword = draw(st.sampled_from(sorted(values)))
            place[keyword] = draw(values[keyword])
    return changed


def grow(draw, place, keyword):
    """Make a keyword allow more, as people do who mean to be compatible."""
    value = place[keyword]
    if keyword.startswith("max") or keyword in ("maximum", "exclusiveMaximum"):
        place[keyword] = value + 1
    elif keyword.startswith("min") and value:
        place[keyword] = value - 1 if keyword == "minimum" else max(value - 1, 0)
    elif keyword == "type":
        place[keyword] = list({*([value] if isinstance(value, str) else value), draw(st.sampled_from(TYPES))})
    elif keyword in ("anyOf", "oneOf"):
        value.append(draw(schemas(1)))
    elif keyword == "enum":
        value.append(draw(st.sampled_from(SCALARS)))
    elif keyword == "required" and value:
        value.pop()
    elif keyword == "properties":
        value[draw(st.sampled_from(NAMES))] = draw(schemas(1))


@st.composite
def pairs(draw):
    writer = draw(roots())
    return writer, draw(st.one_of(changes(writer), changes(writer), changes(writer), roots()))


def documents(depth=2):
    """Any document over the few names and values that the schemas speak of."""
    scalars = st.sampled_from(SCALARS)
    if not depth:
        return scalars
    inner = documents(depth - 1)
    return st.one_of(
        scalars,
        st.dictionaries(st.sampled_from([*NAMES, "ab", "zz"]), inner, max_size=3),
        st.lists(inner, max_size=3),
    )


@st.composite
def documents_for(draw, schema, root, depth=4):
    """A document that a schema will probably allow."""
    if not isinstance(schema, dict) or depth == 0 or draw(st.integers(0, 9)) == 0:
        return draw(documents(1))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return draw(documents_for(draw(st.sampled_from(schema[keyword])), root, depth - 1))
    if "$ref" in schema:
        target = root if schema["$ref"] == "#" else root["definitions"][schema["$ref"][-1]]
        return draw(documents_for(target, root, depth - 1))
    return draw(typed_document(schema, root, depth))


@st.composite
def typed_document(draw, schema, root, depth):
    kinds = schema.get("type", ["object", "array", "string", "number"])
    kind = kinds if isinstance(kinds, str) else draw(st.sampled_from(kinds))
    if kind == "object":
        names = draw(st.lists(st.sampled_from([*NAMES, "ab", "zz"]), max_size=3, unique=True))
        known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
        keep = sorted({*names, *schema.get("required", [])} if other is not False else {*known})
        return {name: draw(documents_for(known.get(name, other), root, depth - 1)) for name in keep}
    if kind == "array":
        least = min(schema.get("minItems", 0), 3)
        count = draw(st.integers(least, 3))
        first = schema.get("prefixItems", [])
        rest = [schema.get("items", True)] * 3
        return [draw(documents_for(item, root, depth - 1)) for item in [*first, *rest][:count]]
    of_kind = {
        "string": str,
        "integer": (int, float),
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
    }
    return draw(st.sampled_from([value for value in SCALARS if isinstance(value, of_kind[kind])]))
