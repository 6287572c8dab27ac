"""Reads an Avro schema's text into types, and says what is wrong with it."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from penstock.documents import Json, JsonObject
from penstock.errors import InvalidSchemaError
from penstock.schemas.compatibility import jsontext
from penstock.schemas.compatibility.avro.canonical import canonical
from penstock.schemas.compatibility.avro.default import Defaults
from penstock.schemas.compatibility.avro.logical import logical_of
from penstock.schemas.compatibility.avro.name import (
    checked_name,
    full_name,
    known_name,
    namespace_of,
    qualified,
)
from penstock.schemas.compatibility.avro.types import (
    MISSING,
    PRIMITIVES,
    Array,
    AvroSchema,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Reference,
    Type,
    Union,
    label,
    short,
)


def parse(text: str, references: Mapping[str, str]) -> AvroSchema:
    """The schema of a text; types of the references may be used by their full names."""
    parser = _Parser()
    parser.read_references(references)
    node = jsontext.load(text)
    root = parser.type_of(node, "", "")
    schema = AvroSchema(root, MappingProxyType(parser.names), jsontext.dump(canonical(node, parser.names)))
    _check_defaults(schema)
    return schema


def _check_defaults(schema: AvroSchema) -> None:
    defaults = Defaults(schema)
    for record in schema.names.values():
        for field in record.fields if isinstance(record, Record) else ():
            if field.has_default and not defaults.fit(field.type, field.default):
                message = f"default {field.default!r} is not a value of {label(schema.resolve(field.type))}"
                where = f"{short(record.name)}.{field.name}"
                raise InvalidSchemaError(message, where=where, hint="give it a default of its own type")


class _Parser:
    """Collects named types while it reads."""

    def __init__(self) -> None:
        self.names: dict[str, Named] = {}
        self._known: set[str] = set()  # those defined, and those being read

    def read_references(self, references: Mapping[str, str]) -> None:
        """Read the references in whatever order they need each other."""
        pending = dict(references)
        while pending:
            errors = {name: self._try_reference(name, text) for name, text in pending.items()}
            left = {name: pending[name] for name, error in errors.items() if error}
            if len(left) == len(pending):
                raise next(error for error in errors.values() if error)
            pending = left

    def _try_reference(self, name: str, text: str) -> InvalidSchemaError | None:
        known = dict(self.names)
        try:
            self.type_of(jsontext.load(text), "", "")
        except InvalidSchemaError as error:
            self.names, self._known = known, set(known)
            return InvalidSchemaError(error.message, where=f"reference {name!r}", hint=error.hint)
        return None

    def type_of(self, node: Json, namespace: str, where: str) -> Type:
        """The type that a JSON value describes."""
        if isinstance(node, str):
            return self._by_name(node, namespace, where)
        if isinstance(node, list):
            return self._union(node, namespace, where)
        if isinstance(node, dict):
            return self._complex(node, namespace, where)
        hint = "use a type's name, an object with a `type`, or a list of types"
        raise InvalidSchemaError(f"{node!r} is not a type", where=where, hint=hint)

    def _by_name(self, name: str, namespace: str, where: str) -> Type:
        if name in PRIMITIVES:
            return Primitive(name)
        qualified(name, namespace, where)
        full = known_name(name, self._known, namespace)
        if full in self._known:
            return Reference(full)
        hint = "define it before it is used, or give it as a reference"
        raise InvalidSchemaError(f"unknown type {name!r}", where=where, hint=hint)

    def _union(self, nodes: list[Json], namespace: str, where: str) -> Union:
        branches = tuple(self.type_of(node, namespace, where) for node in nodes)
        keys = Counter(_branch_key(branch) for branch in branches)
        for key, count in keys.items():
            if key == "union":
                hint = "list all its branches in one union"
                raise InvalidSchemaError("a union directly inside a union", where=where, hint=hint)
            if count > 1:
                hint = "keep one of them, or wrap them in named records"
                raise InvalidSchemaError(f"a union with {key!r} twice", where=where, hint=hint)
        return Union(branches)

    def _complex(self, node: JsonObject, namespace: str, where: str) -> Type:
        kind = node.get("type")
        if kind == "array":
            return Array(self.type_of(_attribute(node, "items", where), namespace, f"{where}[]"))
        if kind == "map":
            return Map(self.type_of(_attribute(node, "values", where), namespace, f"{where}{{}}"))
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(node, namespace, where)
        if not isinstance(kind, str):
            hint = "its `type` must be the name of a type"
            raise InvalidSchemaError(f"an object of type {kind!r}", where=where, hint=hint)
        if kind in PRIMITIVES:
            return Primitive(kind, logical_of(node, kind, where))
        return self._by_name(kind, namespace, where)

    def _named(self, node: JsonObject, namespace: str, where: str) -> Reference:
        name = full_name(node, namespace, where)
        if name in self._known:
            hint = "define it once and use its name afterwards"
            raise InvalidSchemaError(f"{name!r} is defined twice", where=where, hint=hint)
        if name in PRIMITIVES:
            raise InvalidSchemaError(f"{name!r} is Avro's own type", where=where, hint="choose another name")
        self._known.add(name)
        self.names[name] = self._definition(node, name, where or short(name))
        return Reference(name)

    def _definition(self, node: JsonObject, name: str, where: str) -> Named:
        space = namespace_of(name)
        aliases = tuple(qualified(alias, space, where) for alias in _texts(node, "aliases", where))
        if node["type"] == "enum":
            return _enum(node, name, aliases, where)
        if node["type"] == "fixed":
            return Fixed(name, aliases, _size(node, where), logical_of(node, "fixed", where))
        return Record(name, aliases, self._fields(node, space, where))

    def _fields(self, node: JsonObject, namespace: str, where: str) -> tuple[Field, ...]:
        nodes = _attribute(node, "fields", where)
        if not isinstance(nodes, list):
            raise InvalidSchemaError("`fields` is not a list", where=where, hint="list the record's fields")
        fields = tuple(self._field(field, namespace, where) for field in nodes)
        _check_unique([field.name for field in fields], "field", where)
        return fields

    def _field(self, node: Json, namespace: str, where: str) -> Field:
        if not isinstance(node, dict):
            hint = "a field is an object with a `name` and a `type`"
            raise InvalidSchemaError(f"{node!r} is not a field", where=where, hint=hint)
        name = checked_name(node.get("name"), where, "field name")
        inside = f"{where}.{name}"
        type_ = self.type_of(_attribute(node, "type", inside), namespace, inside)
        return Field(name, _texts(node, "aliases", inside), type_, node.get("default", MISSING))


def _enum(node: JsonObject, name: str, aliases: tuple[str, ...], where: str) -> Enum:
    symbols = _texts(node, "symbols", where)
    _check_unique([checked_name(symbol, where, "symbol") for symbol in symbols], "symbol", where)
    default = node.get("default")
    if default is not None and default not in symbols:
        hint = f"use one of {', '.join(symbols[:20])}"
        raise InvalidSchemaError(f"default {default!r} is not a symbol", where=where, hint=hint)
    return Enum(name, aliases, symbols, default)


def _size(node: JsonObject, where: str) -> int:
    size = node.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 2**31:
        hint = "give the number of bytes, less than 2147483648"
        raise InvalidSchemaError(f"a fixed of size {size!r}", where=where, hint=hint)
    return size


def _texts(node: JsonObject, key: str, where: str) -> tuple[str, ...]:
    value = node.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidSchemaError(f"`{key}` is {value!r}", where=where, hint="give a list of names")
    return tuple(value)


def _attribute(node: JsonObject, key: str, where: str) -> Json:
    if key not in node:
        raise InvalidSchemaError(f"`{key}` is missing", where=where, hint="add it")
    return node[key]


def _check_unique(names: list[str], what: str, where: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            hint = "keep one of them"
            raise InvalidSchemaError(f"{what} {name!r} is given twice", where=where, hint=hint)


def _branch_key(branch: Type) -> str:
    match branch:
        case Primitive(name) | Reference(name):
            return name
        case _:
            return type(branch).__name__.lower()
