"""One way to write an Avro schema, so that equal texts mean equal schemas."""

from collections.abc import Container

from penstock.documents import Json, JsonObject
from penstock.schemas.compatibility.avro.name import full_name, known_name, namespace_of, qualified
from penstock.schemas.compatibility.avro.types import PRIMITIVES

_NAMED = ("record", "error", "enum", "fixed")
_FIRST = ("type", "name", "namespace", "doc", "fields", "symbols", "size", "items", "values", "default")


def canonical(node: Json, names: Container[str], namespace: str = "") -> Json:
    """A valid schema written with full names and attributes in one order; docs and properties stay."""
    if isinstance(node, str):
        return node if node in PRIMITIVES else known_name(node, names, namespace)
    if isinstance(node, list):
        return [canonical(branch, names, namespace) for branch in node]
    if node["type"] in _NAMED:
        return _named(node, names, namespace)
    return _unnamed(node, names, namespace)


def _unnamed(node: JsonObject, names: Container[str], namespace: str) -> Json:
    result = dict(node)
    for key in ("items", "values"):
        if node["type"] == ("array" if key == "items" else "map"):
            result[key] = canonical(node[key], names, namespace)
    if node["type"] not in ("array", "map"):
        result["type"] = canonical(node["type"], names, namespace)
    return result["type"] if len(result) == 1 else _ordered(result)


def _named(node: JsonObject, names: Container[str], namespace: str) -> JsonObject:
    name = full_name(node, namespace, "")
    space = namespace_of(name)
    result = {key: value for key, value in node.items() if key != "namespace"}
    result["name"] = name
    if not space and namespace:
        # Without this the name would fall into the namespace around it.
        result["namespace"] = ""
    if "aliases" in node:
        result["aliases"] = [qualified(alias, space, "") for alias in node["aliases"]]
    if "fields" in node and node["type"] in ("record", "error"):
        result["fields"] = [_field(field, names, space) for field in node["fields"]]
    return _ordered(result)


def _field(node: JsonObject, names: Container[str], namespace: str) -> JsonObject:
    return _ordered({**node, "type": canonical(node["type"], names, namespace)})


def _ordered(node: JsonObject) -> JsonObject:
    first = {key: node[key] for key in _FIRST if key in node}
    return {**first, **{key: node[key] for key in sorted(node) if key not in first}}
