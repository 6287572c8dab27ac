"""Whether every document that the writer's schema allows is allowed by the reader's.

The reader's schema is taken apart into single demands; each must follow from what is certainly true of
the writer's documents. What does not follow is refused, be it false or only unprovable.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from penstock.schemas.compatibility.jsonschema.array import array_claims
from penstock.schemas.compatibility.jsonschema.budget import Budget
from penstock.schemas.compatibility.jsonschema.claim import Claim, problem
from penstock.schemas.compatibility.jsonschema.combination import combination_claims
from penstock.schemas.compatibility.jsonschema.dialect import Dialect
from penstock.schemas.compatibility.jsonschema.document import JsonSchema
from penstock.schemas.compatibility.jsonschema.node import Node, same
from penstock.schemas.compatibility.jsonschema.object import object_claims
from penstock.schemas.compatibility.jsonschema.scalar import scalar_claims
from penstock.schemas.compatibility.jsonschema.writer import Writer
from penstock.schemas.compatibility.problem import Problem

_DEEPEST = 60
_STEPS = 5_000
_LOOKS = 50_000
_EXCLUSIONS = 50_000

Pair = tuple[int, frozenset[int]]


def read_problems(reader: JsonSchema, writer: JsonSchema) -> list[Problem]:
    """Why some document of the writer may not be valid for the reader; empty if all provably are."""
    path = _name(reader)
    if reader.identity == writer.identity:
        return []
    foreign = _foreign(reader, writer, path)
    return foreign or _Proof().here(Writer.of([Node(writer.root, writer)]), Node(reader.root, reader), path)


def _name(schema: JsonSchema) -> str:
    title = schema.root.get("title") if isinstance(schema.root, dict) else None
    return title if isinstance(title, str) and title.isidentifier() else "$"


def _foreign(reader: JsonSchema, writer: JsonSchema, path: str) -> list[Problem]:
    declared = {reader.dialect, writer.dialect} - {Dialect.UNDECLARED}
    if len(declared) > 1:
        seen = f"the writer's draft is {writer.dialect}, the reader's {reader.dialect}"
        return [problem(path, "dialect-changed", seen, "keep `$schema` as it is")]
    if Dialect.OTHER in declared or reader.opaque or writer.opaque:
        seen = "with nested `$id`s, anchors, dynamic references or another draft, changes can't be proven"
        return [problem(path, "not-provable", seen, "use draft-07 or 2020-12 with `$ref` to `#/…`")]
    return []


@dataclass(frozen=True)
class _Proof:
    """A proof under way: the pairs it may assume, those it is about to prove, and what it has spent."""

    assumed: frozenset[Pair] = frozenset()
    begun: frozenset[Pair] = frozenset()
    depth: int = 0
    steps: Budget = field(default_factory=lambda: Budget(_STEPS))
    looks: Budget = field(default_factory=lambda: Budget(_LOOKS))
    exclusions: Budget = field(default_factory=lambda: Budget(_EXCLUSIONS))
    # Pairs are known by identity, so schemas made on the way must live as long as the proof.
    kept: list[Node] = field(default_factory=list)

    def inside(self, nodes: list[Node], reader: Node, path: str) -> list[Problem]:
        # Values inside are smaller than their document, so what was begun outside may be assumed.
        self.kept.extend(nodes)
        deeper = replace(self, assumed=self.assumed | self.begun, begun=frozenset())
        return deeper.here(Writer.of(nodes), reader, path)

    def here(self, writer: Writer, reader: Node, path: str) -> list[Problem]:
        pair = (id(reader.schema), frozenset(id(node.schema) for node in writer.nodes))
        if writer.impossible or pair in self.assumed or any(same(node, reader) for node in writer.nodes):
            return []
        if reader.schema is False:
            hint = "let the reader take it"
            return [problem(path, "nothing-allowed", "the writer allows values here, the reader none", hint)]
        if pair in self.begun or self._exhausted(len(writer.nodes)):
            return [
                problem(path, "not-provable", "the schemas are too entangled to compare", "simplify them")
            ]
        proof = replace(self, begun=self.begun | {pair}, depth=self.depth + 1)
        return [*proof._parts(writer, reader, path), *proof._own(writer, reader, path)]

    def _parts(self, writer: Writer, reader: Node, path: str) -> Iterator[Problem]:
        target = reader.referred()
        for part in [target] if target else []:
            yield from self.here(writer, part, path)
        for part in reader.branches("allOf"):
            yield from self.here(writer, part, path)

    def _own(self, writer: Writer, reader: Node, path: str) -> Iterator[Problem]:
        for claim in _claims(reader, path):
            yield from self._settle(claim, writer, frozenset())

    def _exhausted(self, looks: int) -> bool:
        return not self.steps.spend() or not self.looks.spend(looks) or self.depth > _DEEPEST

    def _settle(self, claim: Claim, writer: Writer, tried: frozenset[int]) -> list[Problem]:
        found = claim.problems(writer, self)
        if not found or self._exhausted(len(writer.nodes) + 1):
            return found
        for branches in writer.alternatives():
            key = id(branches[0].schema) if branches else 0
            if self.looks.empty:
                return found
            if key in tried:
                continue
            attempt = self._branched(claim, writer, branches, tried | {key})
            if not attempt:
                return []
            found = attempt
        return found

    def _branched(
        self, claim: Claim, writer: Writer, branches: list[Node], tried: frozenset[int]
    ) -> list[Problem]:
        """What stands against the demand in the first of some branches that does not satisfy it."""
        settled = (self._settle(claim, writer.and_also(branch), tried) for branch in branches)
        return next((found for found in settled if found), [])


def _claims(reader: Node, path: str) -> Iterator[Claim]:
    yield from scalar_claims(reader, path)
    yield from object_claims(reader, path)
    yield from array_claims(reader, path)
    yield from combination_claims(reader, path)
