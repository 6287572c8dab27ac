"""Whether a field's default is a value of its type."""

from penstock.documents import Json, JsonObject
from penstock.schemas.compatibility.avro.types import (
    Array,
    AvroSchema,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Resolved,
    Type,
    Union,
)

_INT = range(-(2**31), 2**31)
_LONG = range(-(2**63), 2**63)
# A default that needs its own type's default, and so on, never ends; nobody nests deeper than this.
_DEEPEST = 50


class Defaults:
    """Judges the defaults of one schema, each pair of a type and a value once for a depth."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        # By the identity of type and value, which the schema keeps alive: the depth up to which they fit,
        # and the one from which they don't.
        self._fitting: dict[tuple[int, int], int] = {}
        self._failing: dict[tuple[int, int], int] = {}

    def fit(self, type_: Type, value: Json, depth: int = 0) -> bool:
        """Whether a JSON value can stand for a value of the type."""
        if depth > _DEEPEST:
            return False
        resolved = self._schema.resolve(type_)
        match resolved:
            case Primitive():
                return _primitive(resolved.name, value)
            case Fixed():
                return _bytes(value) and len(value) == resolved.size
            case Enum():
                return isinstance(value, str) and value in resolved.known
        return self._remembered(resolved, value, depth)

    def _remembered(self, type_: Resolved, value: Json, depth: int) -> bool:
        pair = (id(type_), id(value))
        if depth <= self._fitting.get(pair, -1):
            return True
        if depth >= self._failing.get(pair, _DEEPEST + 1):
            return False
        found = self._composed(type_, value, depth)
        (self._fitting if found else self._failing)[pair] = depth
        return found

    def _composed(self, type_: Resolved, value: Json, depth: int) -> bool:
        match type_:
            case Union(branches):
                return any(self.fit(branch, value, depth + 1) for branch in branches)
            case Array(items):
                return isinstance(value, list) and all(self.fit(items, item, depth + 1) for item in value)
            case Map(values):
                inner = value.values() if isinstance(value, dict) else ()
                return isinstance(value, dict) and all(self.fit(values, item, depth + 1) for item in inner)
            case Record(fields=fields):
                return isinstance(value, dict) and all(self._field(field, value, depth) for field in fields)
        return False

    def _field(self, field: Field, value: JsonObject, depth: int) -> bool:
        return self.fit(field.type, value.get(field.name, field.default), depth + 1)


def _primitive(name: str, value: Json) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    checks = {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "int": number and isinstance(value, int) and value in _INT,
        "long": number and isinstance(value, int) and value in _LONG,
        "float": number,
        "double": number,
        "bytes": name == "bytes" and _bytes(value),
        "string": isinstance(value, str),
    }
    return checks[name]


def _bytes(value: Json) -> bool:
    return isinstance(value, str) and all(ord(character) < 256 for character in value)
