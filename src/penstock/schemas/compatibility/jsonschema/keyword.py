"""Where JSON Schema's keywords hold further schemas."""

from collections.abc import Iterator

from penstock.documents import Json, JsonObject

SINGLE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
MAPS = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

# What says nothing about which documents are valid where it stands.
_SILENT = frozenset(
    {
        "$comment",
        "$defs",
        "$schema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)


def bare(schema: Json) -> Json:
    """A schema without titles, descriptions, definitions and the like, at every depth."""
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: _bare_value(keyword, value) for keyword, value in schema.items() if keyword not in _SILENT
    }


def _bare_value(keyword: str, value: Json) -> Json:
    if keyword in LISTS and isinstance(value, list):
        return [bare(inner) for inner in value]
    if keyword in SINGLE:
        return bare(value)
    if keyword in MAPS and isinstance(value, dict):
        return {name: bare(inner) for name, inner in value.items()}
    return value


def subschemas(schema: Json) -> Iterator[Json]:
    """Every schema directly inside a schema."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in SINGLE and isinstance(value, dict | bool):
            yield value
        elif keyword in LISTS and isinstance(value, list):
            yield from value
        elif keyword in MAPS and isinstance(value, dict):
            yield from (item for item in value.values() if isinstance(item, dict | bool))


def walk(schema: Json) -> Iterator[JsonObject]:
    """Every schema object in a schema, itself first; references are not followed."""
    if isinstance(schema, dict):
        yield schema
    for inner in subschemas(schema):
        yield from walk(inner)
