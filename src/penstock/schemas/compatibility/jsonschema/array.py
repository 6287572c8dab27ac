"""Demands on arrays: their items, how many there are, and whether they repeat."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.schemas.compatibility.jsonschema.claim import Claim, Prover, problem
from penstock.schemas.compatibility.jsonschema.dialect import Dialect
from penstock.schemas.compatibility.jsonschema.node import Node, same
from penstock.schemas.compatibility.jsonschema.scalar import unchanged_claim
from penstock.schemas.compatibility.jsonschema.writer import Writer
from penstock.schemas.compatibility.problem import Problem

ARRAY = frozenset({"array"})
_SHAPE = ["items", "prefixItems", "additionalItems"]
_CONTAINS = ["contains", "minContains", "maxContains"]


@dataclass(frozen=True)
class Shape:
    """The schemas of an array's first items one by one, and of all the rest."""

    first: tuple[Node, ...]
    rest: Node

    def at(self, position: int) -> Node:
        """The schema of the item at a position."""
        return self.first[position] if position < len(self.first) else self.rest


def shape_of(node: Node) -> Shape | None:
    """How a schema describes items; None if that depends on a draft nobody declared."""
    dialect = node.document.dialect
    if node.has("prefixItems") and dialect is Dialect.UNDECLARED:
        return None
    if node.has("prefixItems") and dialect is Dialect.DRAFT_2020_12:
        return Shape(tuple(node.branches("prefixItems")), node.at(node.get("items", True)))
    if isinstance(node.get("items"), list):
        return Shape(tuple(node.branches("items")), node.at(node.get("additionalItems", True)))
    return Shape((), node.at(node.get("items", True)))


def array_claims(reader: Node, path: str) -> Iterator[Claim]:
    """What a schema demands of arrays."""
    if any(reader.has(keyword) for keyword in _SHAPE):
        yield from _shape_claims(reader, path)
    if reader.has("minItems"):
        yield _count(reader, "minItems", path, "min-items-raised", lambda writer: writer.at_least("minItems"))
    if reader.has("maxItems"):
        yield _count(reader, "maxItems", path, "max-items-lowered", most_items)
    if reader.get("uniqueItems"):
        yield _unique(reader, path)
    if reader.has("contains"):
        yield unchanged_claim(reader, _CONTAINS, path, ARRAY)


def _shape_claims(reader: Node, path: str) -> Iterator[Claim]:
    shape = shape_of(reader)
    if shape is None:
        yield unchanged_claim(reader, _SHAPE, path, ARRAY)
        return

    def proof(writer: Writer, prover: Prover) -> list[Problem]:
        if any(same(node, reader, _SHAPE) for node in writer.nodes):
            return []
        return list(_item_problems(shape, writer, prover, path))

    schema = {keyword: reader.get(keyword) for keyword in _SHAPE if reader.has(keyword)}
    hint = "let the reader's items take the writer's"
    yield Claim(f"{path}[]", "items-narrowed", hint, schema, ARRAY, proof, reader.document.dialect)


def _item_problems(shape: Shape, writer: Writer, prover: Prover, path: str) -> Iterator[Problem]:
    most = most_items(writer)
    shapes = [found for found in map(shape_of, writer.nodes) if found]
    # Behind the longest list of first items, one position stands for all.
    last = max([len(shape.first), *(len(other.first) for other in shapes)])
    for position in range(last + 1):
        if most is None or position < most:
            place = f"{path}[]" if position == last else f"{path}[{position}]"
            yield from prover.inside([other.at(position) for other in shapes], shape.at(position), place)


def most_items(writer: Writer) -> int | None:
    """How many items the writer's arrays have at most, if there is a limit."""
    shapes = [found for found in map(shape_of, writer.nodes) if found]
    closed = [len(shape.first) for shape in shapes if shape.rest.schema is False]
    stated = writer.at_most("maxItems")
    return min(closed + ([] if stated is None else [stated]), default=None)


def _count(reader: Node, keyword: str, path: str, rule: str, known: Callable[[Writer], int | None]) -> Claim:
    limit, sign = reader.get(keyword), 1 if keyword.startswith("min") else -1
    hint = f"loosen the reader's {keyword} ({limit})"

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        count = known(writer)
        if count is not None and (count - limit) * sign >= 0:
            return []
        seen = f"the writer's {keyword} is {'not given' if count is None else count}"
        return [problem(path, rule, seen, hint)]

    return Claim(path, rule, hint, {keyword: limit}, ARRAY, proof, reader.document.dialect)


def _unique(reader: Node, path: str) -> Claim:
    hint = "drop uniqueItems from the reader"

    def proof(writer: Writer, _prover: Prover) -> list[Problem]:
        most = most_items(writer)
        if any(node.get("uniqueItems") for node in writer.nodes) or (most is not None and most <= 1):
            return []
        return [problem(path, "unique-items-added", "the writer's items may repeat", hint)]

    schema = {"uniqueItems": True}
    return Claim(path, "unique-items-added", hint, schema, ARRAY, proof, reader.document.dialect)
