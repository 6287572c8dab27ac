"""Whether schemas provably exclude each other."""

from penstock.schemas.compatibility import jsontext
from penstock.schemas.compatibility.jsonschema.node import Node
from penstock.schemas.compatibility.jsonschema.properties import required, value_of
from penstock.schemas.compatibility.jsonschema.writer import NUMBERS, Writer

_DEEPEST = 6


def disjoint(writer: Writer, other: Node) -> bool:
    """Whether no document of the writer satisfies the other schema as well."""
    return _empty(writer.and_also(other), 0)


def _empty(both: Writer, depth: int) -> bool:
    if both.impossible or _no_value(both) or _no_number(both):
        return True
    if depth >= _DEEPEST:
        return False
    return _no_property(both, depth) or _no_alternative(both, depth)


def _no_value(both: Writer) -> bool:
    left: set[str] | None = None
    for node in both.nodes:
        for listed in (node.get("enum"), [node.get("const")] if node.has("const") else None):
            if listed is not None:
                values = {jsontext.dump_sorted(value) for value in listed}
                left = values if left is None else left & values
    return left is not None and not left


def _no_number(both: Writer) -> bool:
    low, high = both.lower, both.upper
    if not both.types <= NUMBERS or low is None or high is None:
        return False
    return low.value > high.value or (low.value == high.value and (low.strict or high.strict))


def _no_property(both: Writer, depth: int) -> bool:
    if both.types != {"object"}:
        return False
    return any(_empty(Writer.of(value_of(both, name)), depth + 1) for name in required(both))


def _no_alternative(both: Writer, depth: int) -> bool:
    return any(
        all(_empty(both.and_also(branch), depth + 1) for branch in branches)
        for branches in both.alternatives()
    )
