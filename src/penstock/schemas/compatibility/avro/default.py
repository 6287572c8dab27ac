"""Whether a field's default is a value of its type."""

from typing import Any

from penstock.schemas.compatibility.avro.types import (
    Array,
    AvroSchema,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
)

_INT = range(-(2**31), 2**31)
_LONG = range(-(2**63), 2**63)
# A default that needs its own type's default, and so on, never ends; nobody nests deeper than this.
_DEEPEST = 50


def fits(schema: AvroSchema, type_: Type, value: Any, depth: int = 0) -> bool:
    """Whether a JSON value can stand for a value of the type, as in a default."""
    if depth > _DEEPEST:
        return False
    resolved = schema.resolve(type_)
    match resolved:
        case Primitive():
            return _primitive(resolved.name, value)
        case Fixed():
            return _bytes(value) and len(value) == resolved.size
        case Enum():
            return isinstance(value, str) and value in resolved.symbols
        case Union():
            return any(fits(schema, branch, value, depth + 1) for branch in resolved.branches)
    return _container(schema, resolved, value, depth)


def _container(schema: AvroSchema, type_: Array | Map | Record, value: Any, depth: int) -> bool:
    match type_:
        case Array(items):
            return isinstance(value, list) and all(fits(schema, items, item, depth + 1) for item in value)
        case Map(values):
            return isinstance(value, dict) and all(
                fits(schema, values, item, depth + 1) for item in value.values()
            )
        case Record(fields=fields):
            return isinstance(value, dict) and all(_field(schema, field, value, depth) for field in fields)


def _field(schema: AvroSchema, field: Field, value: dict[str, Any], depth: int) -> bool:
    given = value.get(field.name, field.default)
    return fits(schema, field.type, given, depth + 1)


def _primitive(name: str, value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    checks = {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "int": number and isinstance(value, int) and value in _INT,
        "long": number and isinstance(value, int) and value in _LONG,
        "float": number,
        "double": number,
        "bytes": _bytes(value),
        "string": isinstance(value, str),
    }
    return checks[name]


def _bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(character) < 256 for character in value)
