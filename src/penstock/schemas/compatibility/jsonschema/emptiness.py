"""Whether schemas provably exclude each other."""

from dataclasses import dataclass

from penstock.schemas.compatibility import jsontext
from penstock.schemas.compatibility.jsonschema.budget import Budget
from penstock.schemas.compatibility.jsonschema.node import Node
from penstock.schemas.compatibility.jsonschema.properties import required, value_of
from penstock.schemas.compatibility.jsonschema.writer import NUMBERS, Writer

_DEEPEST = 6


def disjoint(writer: Writer, other: Node, budget: Budget) -> bool:
    """Whether no document of the writer satisfies the other schema as well."""
    return not budget.empty and _Emptiness(budget).of(writer.and_also(other), 0)


@dataclass(frozen=True)
class _Emptiness:
    budget: Budget

    def of(self, both: Writer, depth: int) -> bool:
        if both.impossible or _no_value(both) or _no_number(both):
            return True
        if depth >= _DEEPEST or self.budget.empty:
            return False
        return self._no_property(both, depth) or self._no_alternative(both, depth)

    def _no_property(self, both: Writer, depth: int) -> bool:
        if both.types != {"object"}:
            return False
        return any(self._without_value(both, name, depth) for name in sorted(required(both)))

    def _without_value(self, both: Writer, name: str, depth: int) -> bool:
        spent = self.budget.spend(1 + len(both.nodes))
        return spent and self.of(Writer.of(value_of(both, name)), depth + 1)

    def _no_alternative(self, both: Writer, depth: int) -> bool:
        return any(
            all(self._excluded(both, branch, depth) for branch in branches)
            for branches in both.alternatives()
        )

    def _excluded(self, both: Writer, branch: Node, depth: int) -> bool:
        if not self.budget.spend(1 + len(both.nodes)):
            return False
        further = both.and_also(branch)
        # A branch that holds anyway proves nothing new.
        return len(further.nodes) > len(both.nodes) and self.of(further, depth + 1)


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
