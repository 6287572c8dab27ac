"""Avro names: what is allowed, and how a namespace completes them."""

import re
from collections.abc import Container

from penstock.documents import Json, JsonObject
from penstock.errors import InvalidSchemaError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def checked_name(value: Json, where: str, what: str = "name") -> str:
    """A simple name, or an error that says why it isn't one."""
    if not isinstance(value, str) or not _NAME.match(value):
        hint = "use letters, digits and underscores, not starting with a digit"
        raise InvalidSchemaError(f"{value!r} is not a {what}", where=where, hint=hint)
    return value


def full_name(node: JsonObject, namespace: str, where: str) -> str:
    """The full name of a type's definition."""
    name = node.get("name")
    own = node.get("namespace", namespace)
    if not isinstance(name, str) or not isinstance(own, str):
        hint = "records, enums and fixed need a `name`, and their `namespace` is a text"
        raise InvalidSchemaError(f"name {name!r}, namespace {own!r}", where=where, hint=hint)
    return qualified(name, own, where)


def qualified(name: str, namespace: str, where: str) -> str:
    """A name completed by a namespace unless it has its own."""
    full = name if "." in name or not namespace else f"{namespace}.{name}"
    for part in full.split("."):
        checked_name(part, where, f"part of a name (in {full!r})")
    return full


def namespace_of(name: str) -> str:
    """The namespace of a full name, empty if it has none."""
    return name.rpartition(".")[0]


def known_name(name: str, names: Container[str], namespace: str) -> str:
    """The full name a reference means: in the namespace around it, else as it stands."""
    full = qualified(name, namespace, "")
    return full if full in names or name not in names else name
