"""What is known of the properties of the writer's objects."""

from collections.abc import Collection

from penstock.schemas.compatibility.jsonschema.expression import search
from penstock.schemas.compatibility.jsonschema.node import Node
from penstock.schemas.compatibility.jsonschema.writer import Writer


def matches(pattern: str, name: str) -> bool | None:
    """Whether a pattern matches a name; None if that can't be said."""
    return search(pattern, name)


def names(writer: Writer) -> list[str]:
    """The properties that the writer declares, in order."""
    return list(dict.fromkeys(name for node in writer.nodes for name in node.get("properties", {})))


def required(writer: Writer) -> set[str]:
    """The properties that are always there."""
    return {name for node in writer.nodes for name in node.get("required", [])}


def value_of(writer: Writer, name: str) -> list[Node]:
    """The schemas that the value of a property satisfies, if it is there."""
    return [found for node in writer.nodes for found in _values(node, name)]


def _values(node: Node, name: str) -> list[Node]:
    properties, patterns = node.get("properties", {}), node.get("patternProperties", {})
    matching = {pattern: matches(pattern, name) for pattern in patterns}
    found = [patterns[pattern] for pattern, hit in matching.items() if hit]
    if name in properties:
        found.append(properties[name])
    elif not any(hit is not False for hit in matching.values()):
        found.append(node.get("additionalProperties", True))
    return [node.at(schema) for schema in found]


def value_of_others(writer: Writer, without: Collection[str]) -> list[Node]:
    """The schemas satisfied under names that are not declared and match none of the patterns `without`."""
    return [found for node in writer.nodes for found in _other_values(node, without)]


def value_of_matching(writer: Writer, pattern: str) -> list[Node]:
    """The schemas satisfied under names that are not declared and match a pattern."""
    certain = [
        node.at(node.get("patternProperties")[pattern])
        for node in writer.nodes
        if pattern in node.get("patternProperties", {})
    ]
    return certain + value_of_others(writer, ())


def _other_values(node: Node, without: Collection[str]) -> list[Node]:
    additional = node.get("additionalProperties", True)
    patterns = node.get("patternProperties", {})
    schemas = [schema for pattern, schema in patterns.items() if pattern not in without]
    if additional is True:
        return []
    return [node.at({"anyOf": [*schemas, additional]} if schemas else additional)]
