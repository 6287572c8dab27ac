"""Demands on objects: their properties, and whether they may have others."""

from collections.abc import Callable, Iterator

from penstock.documents import JsonObject
from penstock.schemas.compatibility.jsonschema.claim import Claim, Prover, problem
from penstock.schemas.compatibility.jsonschema.node import Node
from penstock.schemas.compatibility.jsonschema.properties import (
    matches,
    names,
    required,
    value_of,
    value_of_matching,
    value_of_others,
)
from penstock.schemas.compatibility.jsonschema.scalar import unchanged_claim
from penstock.schemas.compatibility.jsonschema.writer import Writer
from penstock.schemas.compatibility.problem import Problem

OBJECT = frozenset({"object"})
_UNCHANGED = ("propertyNames", "dependentRequired", "dependentSchemas", "dependencies")

Proof = Callable[[Writer, Prover], list[Problem]]


def object_claims(reader: Node, path: str) -> Iterator[Claim]:
    """What a schema demands of objects."""
    for name in reader.get("properties", {}):
        yield _property(reader, name, path)
    for pattern in reader.get("patternProperties", {}):
        yield _pattern(reader, pattern, path)
    if reader.get("additionalProperties", True) is not True:
        yield _additional(reader, path)
    for name in reader.get("required", []):
        yield _required(reader, name, path)
    yield from _counts(reader, path)
    for keyword in _UNCHANGED:
        if reader.has(keyword):
            yield unchanged_claim(reader, [keyword], path, OBJECT)


def _property(reader: Node, name: str, path: str) -> Claim:
    wanted, inside = reader.at(reader.get("properties")[name]), f"{path}.{name}"
    hint = (
        "declare the property in the writer, close the writer's content (additionalProperties: false), "
        "or leave its type open"
    )

    def proof(writer: Writer, prover: Prover) -> list[Problem]:
        known = value_of(writer, name)
        found = prover.inside(known, wanted, inside)
        if found and not _declared(known):
            seen = f"the writer's open content lets {name!r} be anything"
            return [problem(inside, "property-added-to-open-content", seen, hint)]
        return found

    schema = {"properties": {name: wanted.schema}}
    return _claim(
        reader, schema, inside, "property-narrowed", "let the reader take the writer's values", proof
    )


def _declared(known: list[Node]) -> bool:
    return any(node.schema not in (True, {}) for node in known)


def _pattern(reader: Node, pattern: str, path: str) -> Claim:
    wanted, inside = reader.at(reader.get("patternProperties")[pattern]), f"{path}.{{{pattern}}}"

    def proof(writer: Writer, prover: Prover) -> list[Problem]:
        found = prover.inside(value_of_matching(writer, pattern), wanted, inside)
        for name in names(writer):
            if matches(pattern, name) is not False:
                found = found + prover.inside(value_of(writer, name), wanted, f"{path}.{name}")
        return found

    schema = {"patternProperties": {pattern: wanted.schema}}
    return _claim(
        reader, schema, inside, "property-narrowed", "let the reader take the writer's values", proof
    )


def _additional(reader: Node, path: str) -> Claim:
    wanted = reader.at(reader.get("additionalProperties"))
    own, patterns = reader.get("properties", {}), reader.get("patternProperties", {})

    def proof(writer: Writer, prover: Prover) -> list[Problem]:
        found = []
        for name in names(writer):
            if name not in own and not any(matches(pattern, name) for pattern in patterns):
                found += _removed(
                    prover.inside(value_of(writer, name), wanted, f"{path}.{name}"), wanted, name
                )
        others = prover.inside(value_of_others(writer, patterns), wanted, f"{path}.*")
        return found + _closed(others, wanted, path)

    keywords = ("properties", "patternProperties", "additionalProperties")
    # Only the names of declared properties count here, not what they hold.
    declared = {keywords[0]: dict.fromkeys(own, True), keywords[1]: dict.fromkeys(patterns, True)}
    schema = {**declared, keywords[2]: wanted.schema}
    hint = "let the reader take other properties"
    return _claim(reader, schema, path, "content-closed", hint, proof)


def _removed(found: list[Problem], wanted: Node, name: str) -> list[Problem]:
    if not found or wanted.schema is not False:
        return found
    hint = "keep the property in the reader, or open its content (additionalProperties)"
    seen = f"the writer's {name!r} is unknown to the reader, whose content is closed"
    return [problem(found[0].path, "property-removed-from-closed-content", seen, hint)]


def _closed(found: list[Problem], wanted: Node, path: str) -> list[Problem]:
    if not found or wanted.schema is not False:
        return found
    hint = "open the reader's content (additionalProperties), or close the writer's first"
    seen = "the writer allows properties beyond the declared ones, the reader none"
    return [problem(path, "content-closed", seen, hint)]


def _required(reader: Node, name: str, path: str) -> Claim:
    inside = f"{path}.{name}"
    hint = "make it optional in the reader (a default does not put it into earlier documents)"

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        if name in required(writer):
            return []
        seen = f"the reader requires {name!r}, the writer does not"
        return [problem(inside, "required-added", seen, hint)]

    return _claim(reader, {"required": [name]}, inside, "required-added", hint, proof)


def _counts(reader: Node, path: str) -> Iterator[Claim]:
    if reader.has("minProperties"):
        yield _count(reader, "minProperties", path, "min-properties-raised", _fewest)
    if reader.has("maxProperties"):
        yield _count(reader, "maxProperties", path, "max-properties-lowered", _most)


def _count(reader: Node, keyword: str, path: str, rule: str, known: Callable[[Writer], int | None]) -> Claim:
    limit, sign = reader.get(keyword), 1 if keyword.startswith("min") else -1
    hint = f"loosen the reader's {keyword} ({limit})"

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        count = known(writer)
        if count is not None and (count - limit) * sign >= 0:
            return []
        seen = f"the writer's objects have {'no limit' if count is None else count}"
        return [problem(path, rule, seen, hint)]

    return _claim(reader, {keyword: limit}, path, rule, hint, proof)


def _fewest(writer: Writer) -> int:
    return max(writer.at_least("minProperties"), len(required(writer)))


def _most(writer: Writer) -> int | None:
    closed = [
        len(node.get("properties", {}))
        for node in writer.nodes
        if node.get("additionalProperties") is False and not node.get("patternProperties")
    ]
    stated = writer.at_most("maxProperties")
    return min(closed + ([] if stated is None else [stated]), default=None)


def _claim(reader: Node, schema: JsonObject, path: str, rule: str, hint: str, proof: Proof) -> Claim:
    return Claim(path, rule, hint, schema, OBJECT, proof, reader.document.dialect)
