"""Demands on types, enumerated values, numbers and texts."""

from collections.abc import Callable, Iterator
from typing import Any

from penstock.schemas.compatibility import jsontext
from penstock.schemas.compatibility.jsonschema.claim import Claim, Prover, problem
from penstock.schemas.compatibility.jsonschema.node import Node, same
from penstock.schemas.compatibility.jsonschema.writer import NUMBERS, TYPES, Bound, Writer, named_types
from penstock.schemas.compatibility.problem import Problem

_STRING = frozenset({"string"})
_EXACT = {
    "pattern": (
        "pattern-changed",
        _STRING,
        "whether it implies the writer's can't be proven; keep the pattern",
    ),
    "format": ("format-changed", _STRING, "validators may enforce formats; keep the format"),
    "contentEncoding": ("not-provable", _STRING, "keep it as the writer has it"),
    "contentMediaType": ("not-provable", _STRING, "keep it as the writer has it"),
}


def scalar_claims(reader: Node, path: str) -> Iterator[Claim]:
    """What a schema demands of a value itself."""
    if reader.has("type"):
        yield _type(reader, path)
    for keyword in ("enum", "const"):
        if reader.has(keyword):
            yield _enumerated(reader, keyword, path)
    yield from _number_claims(reader, path)
    yield from limit_claims(reader, path, "Length", _STRING)
    for keyword in _EXACT:
        if reader.has(keyword):
            yield _exact(reader, keyword, path)
    if reader.has("contentSchema"):
        yield unchanged_claim(reader, ["contentSchema"], path, _STRING)


def _type(reader: Node, path: str) -> Claim:
    allowed = named_types(reader.get("type"))
    hint = f"let the reader's type ({jsontext.dump(reader.get('type'))}) take what the writer allows"

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        extra = writer.types - allowed
        if not extra:
            return []
        seen = "any type" if writer.types == TYPES else " or ".join(sorted(_words(writer.types)))
        return [problem(path, "type-narrowed", f"the writer allows {seen}", hint)]

    return _claim(reader, ["type"], path, "type-narrowed", hint, TYPES, proof)


def _words(types: frozenset[str]) -> set[str]:
    return {"number" if name == "fraction" else name for name in types}


def _enumerated(reader: Node, keyword: str, path: str) -> Claim:
    rule = "enum-narrowed" if keyword == "enum" else "const-changed"
    hint = f"add the writer's values to the reader's {keyword}, or drop it"

    def proof(_writer: Writer, _prover: Prover) -> list[Problem]:
        seen = f"the writer allows other values than {jsontext.dump(reader.get(keyword))}"
        return [problem(path, rule, seen, hint)]

    return _claim(reader, [keyword], path, rule, hint, TYPES, proof)


def _number_claims(reader: Node, path: str) -> Iterator[Claim]:
    for keyword in ("minimum", "exclusiveMinimum"):
        if reader.has(keyword):
            yield _bound(reader, keyword, path, "minimum-raised", lambda writer: writer.lower, 1)
    for keyword in ("maximum", "exclusiveMaximum"):
        if reader.has(keyword):
            yield _bound(reader, keyword, path, "maximum-lowered", lambda writer: writer.upper, -1)
    if reader.has("multipleOf"):
        yield _multiple(reader, path)


def _bound(
    reader: Node, keyword: str, path: str, rule: str, known: Callable[[Writer], Bound | None], sign: int
) -> Claim:
    limit = Bound(reader.get(keyword), keyword.startswith("exclusive"))
    hint = f"loosen the reader's {keyword} ({limit.value})"

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        bound = known(writer)
        if bound and _within(bound, limit, sign):
            return []
        seen = f"the writer's bound is {bound.value}" if bound else "the writer has no such bound"
        return [problem(path, rule, seen, hint)]

    return _claim(reader, [keyword], path, rule, hint, NUMBERS, proof)


def _within(bound: Bound, limit: Bound, sign: int) -> bool:
    if bound.value == limit.value:
        return bound.strict or not limit.strict
    return bound.value > limit.value if sign > 0 else bound.value < limit.value


def _multiple(reader: Node, path: str) -> Claim:
    step = reader.get("multipleOf")
    hint = f"let the reader's multipleOf ({step}) divide the writer's"

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        steps = [node.get("multipleOf") for node in writer.nodes if node.has("multipleOf")]
        if "fraction" not in writer.types:
            steps.append(1)
        if any(_divides(step, other) for other in steps):
            return []
        return [
            problem(path, "multiple-of-changed", f"the writer's multiples are of {steps or 'nothing'}", hint)
        ]

    return _claim(reader, ["multipleOf"], path, "multiple-of-changed", hint, NUMBERS, proof)


def _divides(step: Any, other: Any) -> bool:
    # Validators divide fractions in floating point, so only whole steps are relied on.
    whole = isinstance(step, int) and isinstance(other, int)
    return bool(step == other or (whole and other % step == 0))


def limit_claims(reader: Node, path: str, what: str, about: frozenset[str]) -> Iterator[Claim]:
    """The demands of `minLength` and `maxLength`, or of the same for items."""
    if reader.has(f"min{what}"):
        yield _limit(reader, f"min{what}", path, about, lambda writer: writer.at_least(f"min{what}"))
    if reader.has(f"max{what}"):
        yield _limit(reader, f"max{what}", path, about, lambda writer: writer.at_most(f"max{what}"))


def _limit(
    reader: Node, keyword: str, path: str, about: frozenset[str], known: Callable[[Writer], int | None]
) -> Claim:
    lowest = keyword.startswith("min")
    limit = reader.get(keyword)
    words = f"{keyword[:3]}-{keyword[3:].lower()}"
    rule = f"{words}-raised" if lowest else f"{words}-lowered"
    hint = f"loosen the reader's {keyword} ({limit})"

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        value = known(writer)
        if value is not None and (value >= limit if lowest else value <= limit):
            return []
        seen = f"the writer's {keyword} is {value}" if value is not None else f"the writer has no {keyword}"
        return [problem(path, rule, seen, hint)]

    return _claim(reader, [keyword], path, rule, hint, about, proof)


def _exact(reader: Node, keyword: str, path: str) -> Claim:
    rule, about, hint = _EXACT[keyword]

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        if any(node.get(keyword) == reader.get(keyword) for node in writer.nodes if node.has(keyword)):
            return []
        given = [jsontext.dump(node.get(keyword)) for node in writer.nodes if node.has(keyword)]
        mine, theirs = jsontext.dump(reader.get(keyword)), ", ".join(given) or "none"
        seen = f"the reader's {keyword} is {mine}, the writer's {theirs}"
        return [problem(path, rule, seen, hint)]

    return _claim(reader, [keyword], path, rule, hint, about, proof)


def unchanged_claim(reader: Node, keywords: list[str], path: str, about: frozenset[str]) -> Claim:
    """The demand of keywords that are only proven by being the writer's as well."""
    hint = "keep it as the writer has it, or register under another subject"

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        if any(same(node, reader, keywords) for node in writer.nodes):
            return []
        seen = f"that the writer's documents satisfy the reader's {keywords[0]!r} can't be proven"
        return [problem(path, "not-provable", seen, hint)]

    return _claim(reader, keywords, path, "not-provable", hint, about, proof)


def _claim(
    reader: Node,
    keywords: list[str],
    path: str,
    rule: str,
    hint: str,
    about: frozenset[str],
    proof: Callable[[Writer, Prover], list[Problem]],
) -> Claim:
    schema = {keyword: reader.get(keyword) for keyword in keywords if reader.has(keyword)}
    return Claim(path, rule, hint, schema, about, proof, reader.document.dialect)
