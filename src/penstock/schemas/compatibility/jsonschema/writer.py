"""What is certainly true of every document that the writer's schema allows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor

from penstock.documents import Json
from penstock.schemas.compatibility.jsonschema.node import Node, facts

# A number is an integer or a fraction, so that "integer within number" is a plain subset.
NUMBERS = frozenset({"integer", "fraction"})
TYPES = frozenset({"null", "boolean", "object", "array", "string"}) | NUMBERS
_ONLY = {name: {"type": name} for name in (*sorted(TYPES - {"fraction"}), "number")}


@dataclass(frozen=True)
class Bound:
    """A lower or upper bound of numbers; strict ones exclude their value."""

    value: float
    strict: bool


@dataclass(frozen=True, eq=False)
class Writer:
    """Schemas that hold together; each alone, and what they share, may be relied on."""

    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> "Writer":
        """The writer of some schemas and everything they imply."""
        return cls(facts(nodes))

    @cached_property
    def impossible(self) -> bool:
        """Whether no document at all is allowed."""
        return not self.types or any(node.schema is False for node in self.nodes)

    @cached_property
    def types(self) -> frozenset[str]:
        """The types that documents can have."""
        found = TYPES
        for node in self.nodes:
            found &= _types(node)
        return found

    @cached_property
    def values(self) -> list[Json] | None:
        """The documents themselves, if there are only so many."""
        for node in self.nodes:
            for listed in (node.get("enum"), [node.get("const")] if node.has("const") else None):
                if listed is not None:
                    return [value for value in listed if type_of(value) in self.types]
        few: dict[str, list[Json]] = {"null": [None], "boolean": [False, True]}
        return [v for name in sorted(self.types) for v in few[name]] if self.types <= set(few) else None

    def cases(self) -> Iterator["Writer"]:
        """The writer taken apart by type."""
        names = set(self.types)
        if names >= NUMBERS:
            names = (names - NUMBERS) | {"number"}
        for name in sorted(names & set(_ONLY)):
            yield Writer((*self.nodes, Node(_ONLY[name], self.nodes[0].document))) if self.nodes else self

    def alternatives(self) -> Iterator[list[Node]]:
        """The lists of schemas of which one at least holds."""
        for node in self.nodes:
            for keyword in ("anyOf", "oneOf"):
                if node.has(keyword):
                    yield node.branches(keyword)

    def and_also(self, node: Node) -> "Writer":
        """The writer where a further schema holds."""
        return Writer.of((*self.nodes, node))

    def at_least(self, keyword: str) -> int:
        """The largest lower limit, such as of `minLength`."""
        return max((int(node.get(keyword, 0)) for node in self.nodes), default=0)

    def at_most(self, keyword: str) -> int | None:
        """The smallest upper limit, such as of `maxLength`, if there is one."""
        return min((int(node.get(keyword)) for node in self.nodes if node.has(keyword)), default=None)

    @cached_property
    def lower(self) -> Bound | None:
        """The bound below which no number goes."""
        bounds = list(_bounds(self.nodes, "minimum", "exclusiveMinimum"))
        best = max(bounds, key=lambda bound: (bound.value, bound.strict), default=None)
        if best and "fraction" not in self.types:
            return Bound(floor(best.value) + 1 if best.strict else ceil(best.value), False)
        return best

    @cached_property
    def upper(self) -> Bound | None:
        """The bound above which no number goes."""
        bounds = list(_bounds(self.nodes, "maximum", "exclusiveMaximum"))
        best = min(bounds, key=lambda bound: (bound.value, not bound.strict), default=None)
        if best and "fraction" not in self.types:
            return Bound(ceil(best.value) - 1 if best.strict else floor(best.value), False)
        return best


def type_of(value: Json) -> str:
    """The type of a JSON value, where 1.0 is an integer as well."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "fraction"
    names = {
        type(None): "null",
        bool: "boolean",
        int: "integer",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names[type(value)]


def named_types(value: Json) -> frozenset[str]:
    """The types that a `type` keyword allows."""
    names = [value] if isinstance(value, str) else value
    return frozenset().union(*(NUMBERS if name == "number" else {name} for name in names))


def _types(node: Node) -> frozenset[str]:
    found = named_types(node.get("type")) if node.has("type") else TYPES
    for listed in (node.get("enum"), [node.get("const")] if node.has("const") else None):
        if listed is not None:
            found &= {type_of(value) for value in listed}
    return found


def _bounds(nodes: tuple[Node, ...], inclusive: str, exclusive: str) -> Iterator[Bound]:
    for node in nodes:
        if node.has(inclusive):
            yield Bound(node.get(inclusive), False)
        if node.has(exclusive):
            yield Bound(node.get(exclusive), True)
