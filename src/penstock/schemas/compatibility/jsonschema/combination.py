"""Demands that combine schemas: anyOf, oneOf, not, and those only proven when unchanged."""

from collections.abc import Iterator

from penstock.schemas.compatibility.jsonschema.claim import Claim, Prover, problem
from penstock.schemas.compatibility.jsonschema.emptiness import disjoint
from penstock.schemas.compatibility.jsonschema.node import Node, same
from penstock.schemas.compatibility.jsonschema.scalar import unchanged_claim
from penstock.schemas.compatibility.jsonschema.writer import TYPES, Writer
from penstock.schemas.compatibility.problem import Problem

_HINT = "keep the writer's alternatives as they are and add new ones that exclude them, such as by type"


def combination_claims(reader: Node, path: str) -> Iterator[Claim]:
    """What a schema demands by combining others."""
    for keyword in ("anyOf", "oneOf"):
        if reader.has(keyword):
            yield _alternatives(reader, keyword, path)
    if reader.has("not"):
        yield _negation(reader, path)
    if reader.has("if"):
        yield unchanged_claim(reader, ["if", "then", "else"], path, TYPES)
    for keyword in ("unevaluatedProperties", "unevaluatedItems"):
        if reader.has(keyword):
            yield _never(reader, keyword, path)


def _alternatives(reader: Node, keyword: str, path: str) -> Claim:
    branches = reader.branches(keyword)

    def proof(writer: Writer, prover: Prover) -> list[Problem]:
        if any(same(node, reader, [keyword]) for node in writer.nodes):
            return []
        for case in list(writer.cases()) or [writer]:
            found = _case(case, branches, keyword, path, prover)
            if found:
                return found
        return []

    schema = {keyword: reader.get(keyword)}
    return Claim(path, "not-provable", _HINT, schema, TYPES, proof, reader.document.dialect)


def _case(writer: Writer, branches: list[Node], keyword: str, path: str, prover: Prover) -> list[Problem]:
    if writer.impossible:
        return []
    attempts = [prover.here(writer, branch, path) for branch in branches]
    for position, found in enumerate(attempts):
        if not found and (keyword == "anyOf" or _only(position, writer, branches, prover)):
            return []
    return _closest(attempts, keyword, path)


def _only(position: int, writer: Writer, branches: list[Node], prover: Prover) -> bool:
    others = [branch for other, branch in enumerate(branches) if other != position]
    return all(disjoint(writer, branch, prover.exclusions) for branch in others)


def _closest(attempts: list[list[Problem]], keyword: str, path: str) -> list[Problem]:
    near = [found for found in attempts if found and not _wrong_type(found, path)]
    if len(near) == 1 and all(attempts):
        return near[0]
    count = "exactly one" if keyword == "oneOf" else "one"
    seen = f"that {count} of the reader's {keyword} takes whatever the writer allows can't be proven"
    return [problem(path, "not-provable", seen, _HINT)]


def _wrong_type(found: list[Problem], path: str) -> bool:
    return any(one.path == path and one.rule == "type-narrowed" for one in found)


def _negation(reader: Node, path: str) -> Claim:
    excluded = reader.at(reader.get("not"))

    def proof(writer: Writer, prover: Prover) -> list[Problem]:
        kept = any(same(node, reader, ["not"]) for node in writer.nodes)
        if kept or disjoint(writer, excluded, prover.exclusions):
            return []
        seen = "that the writer never writes what the reader's `not` excludes can't be proven"
        return [problem(path, "not-provable", seen, "keep `not` as the writer has it, or drop it")]

    schema = {"not": reader.get("not")}
    hint = "let the reader take the writer's values"
    return Claim(path, "not-provable", hint, schema, TYPES, proof, reader.document.dialect)


def _never(reader: Node, keyword: str, path: str) -> Claim:
    # What counts as evaluated depends on everything beside it: only an unchanged schema is proven.
    def proof(_writer: Writer, _prover: Prover) -> list[Problem]:
        seen = f"the reader's {keyword} depends on the schemas around it, which have changed"
        return [problem(path, "not-provable", seen, f"drop {keyword}, or use additionalProperties")]

    schema = {keyword: reader.get(keyword)}
    return Claim(path, "not-provable", "", schema, TYPES, proof, reader.document.dialect)
