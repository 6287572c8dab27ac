"""One thing that a reader's schema demands of documents."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.documents import Json, JsonObject
from penstock.schemas.compatibility import jsontext
from penstock.schemas.compatibility.jsonschema.budget import Budget
from penstock.schemas.compatibility.jsonschema.dialect import Dialect
from penstock.schemas.compatibility.jsonschema.keyword import walk
from penstock.schemas.compatibility.jsonschema.node import Node
from penstock.schemas.compatibility.jsonschema.validation import valid
from penstock.schemas.compatibility.jsonschema.writer import Writer
from penstock.schemas.compatibility.problem import Problem

# What a validator without the document, or without format checks, would wave through.
_UNTESTABLE = frozenset(
    {
        "$ref",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "format",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)


class Prover(Protocol):
    """Proves that whatever some schemas allow, another allows as well."""

    @property
    def exclusions(self) -> Budget:
        """What may still be spent on proofs that schemas exclude each other."""
        ...

    def inside(self, nodes: list[Node], reader: Node, path: str) -> list[Problem]:
        """What stands against it for a value inside the document."""
        ...

    def here(self, writer: Writer, reader: Node, path: str) -> list[Problem]:
        """What stands against it for the document itself."""
        ...


@dataclass(frozen=True)
class Claim:
    """A demand, the keywords that state it, the types it is about, and how it is proven."""

    path: str
    rule: str
    hint: str
    schema: JsonObject
    about: frozenset[str]
    proof: Callable[[Writer, Prover], list[Problem]]
    dialect: Dialect

    def problems(self, writer: Writer, prover: Prover) -> list[Problem]:
        """What stands against the demand for the documents of a writer."""
        if writer.impossible or not writer.types & self.about:
            return []
        if writer.values is not None and self._testable:
            return self._refused(writer.values)
        return self.proof(writer, prover)

    @property
    def _testable(self) -> bool:
        return not any(_UNTESTABLE & inner.keys() for inner in walk(self.schema))

    def _refused(self, values: list[Json]) -> list[Problem]:
        bad = [value for value in values if not valid(value, self.schema, self.dialect)]
        if not bad:
            return []
        seen = ", ".join(jsontext.dump(value) for value in bad[:5])
        return [problem(self.path, self.rule, f"the writer allows {seen}, the reader does not", self.hint)]


def problem(path: str, rule: str, seen: str, hint: str) -> Problem:
    """A problem in the one wording all have: what was seen, then what to do."""
    return Problem(path, rule, f"{seen}; {hint}")
