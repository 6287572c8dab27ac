"""A JSON Schema document: its text checked, its references resolvable, its draft known."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from urllib.parse import unquote

from penstock.documents import Json
from penstock.errors import InvalidSchemaError
from penstock.schemas.compatibility import jsontext
from penstock.schemas.compatibility.jsonschema.dialect import Dialect, check, checker_of, dialect_of
from penstock.schemas.compatibility.jsonschema.keyword import bare, walk

_DEFINITIONS = ("definitions", "$defs")


@dataclass(frozen=True, eq=False)
class JsonSchema:
    """A document and the others it refers to by name."""

    root: Json
    dialect: Dialect
    canonical: str
    others: Mapping[str, Json]

    def target(self, reference: str, within: str) -> tuple[Json, str]:
        """What a `$ref` in the document named `within` points to, and the document that is in."""
        address, _, pointer = reference.partition("#")
        document = self._document(address, within)
        return _at(self.root if document == "" else self.others[document], pointer, reference), document

    def _document(self, address: str, within: str) -> str:
        if address == "":
            return within
        if isinstance(self.root, dict) and address == str(self.root.get("$id", "")).rstrip("#"):
            return ""
        for name, other in self.others.items():
            if address == name or (isinstance(other, dict) and address == other.get("$id")):
                return name
        hint = "register it first and give it as a reference, or use a local `#/…`"
        raise InvalidSchemaError(f"`$ref` {address!r} is unknown", where="$", hint=hint)

    @cached_property
    def identity(self) -> str:
        """Equal for documents that are the same together with what they refer to."""
        return jsontext.dump_sorted([self.root, dict(self.others)])

    @cached_property
    def opaque(self) -> bool:
        """Whether it uses what is not followed: nested ids, anchors, dynamic references, mixed drafts."""
        schemas = [schema for root in (self.root, *self.others.values()) for schema in walk(root)]
        roots = [id(self.root), *(id(other) for other in self.others.values())]
        dialects = {dialect_of(other) for other in self.others.values()} - {Dialect.UNDECLARED, self.dialect}
        return bool(dialects) or any(
            "$dynamicRef" in schema
            or "$recursiveRef" in schema
            or not _plain(str(schema.get("$ref", "")))
            or ("$id" in schema and id(schema) not in roots)
            for schema in schemas
        )

    @cached_property
    def definitions(self) -> str | None:
        """What references can lead to, as one text; None if they lead elsewhere than to definitions."""
        keys = _DEFINITIONS if isinstance(self.root, dict) else ()
        local = [{name: bare(inner) for name, inner in self.root.get(key, {}).items()} for key in keys]
        names = ("#/definitions/", "#/$defs/", *self.others)
        if not all(reference.startswith(names) for reference in _references(self.root)):
            return None
        return jsontext.dump_sorted([local, dict(self.others)])


def parse(text: str, references: Mapping[str, str]) -> JsonSchema:
    """The document of a text; `$ref`s may name the references."""
    root = jsontext.load(text)
    if not isinstance(root, dict | bool):
        raise InvalidSchemaError(f"{text[:40]!r} is not a schema", hint="a schema is an object or a boolean")
    others = {name: jsontext.load(other) for name, other in references.items()}
    dialect = dialect_of(root)
    schema = JsonSchema(root, dialect, jsontext.dump_sorted(root), MappingProxyType(others))
    _check(schema)
    return schema


def _check(schema: JsonSchema) -> None:
    checker = checker_of(schema.root, schema.dialect)
    check(checker, schema.root)
    for name, other in schema.others.items():
        check(checker_of(other, dialect_of(other)), other, name)
    checked: set[int] = set()
    pending = [(schema.root, ""), *((other, name) for name, other in schema.others.items())]
    while pending:
        part, within = pending.pop()
        if id(part) not in checked:
            checked.add(id(part))
            # A reference can lead to a place that the draft itself doesn't look at.
            check(checker, part, within)
            pending.extend(schema.target(reference, within) for reference in _local(part))


def _local(part: Json) -> Iterator[str]:
    # An anchor or an absolute address inside a document with nested ids is left to the checker to refuse.
    return (reference for reference in _references(part) if _plain(reference))


def _plain(reference: str) -> bool:
    _, _, pointer = reference.partition("#")
    return pointer == "" or pointer.startswith("/")


def _references(root: Json) -> Iterator[str]:
    for schema in walk(root):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]


def _at(root: Json, pointer: str, reference: str) -> Json:
    found = root
    for part in pointer.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        found = _step(found, key)
    if not _plain(reference) or not isinstance(found, dict | bool):
        hint = "point to a schema, such as `#/definitions/…`"
        raise InvalidSchemaError(f"`$ref` {reference!r} leads to no schema", where="$", hint=hint)
    return found


def _step(value: Json, key: str) -> Json:
    if isinstance(value, list) and key.isdigit() and int(key) < len(value):
        return value[int(key)]
    return value.get(key) if isinstance(value, dict) else None
