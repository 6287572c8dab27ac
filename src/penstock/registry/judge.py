"""Parses schemas and compares them: in this process, for schemas of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, overload

from penstock.registry.cache import BoundedCache
from penstock.schemas.compatibility import Mode, ParsedSchema, Problem, SchemaKind, check, parse

_PARSED = 10**6  # characters of text whose parsed schemas are kept


@dataclass(frozen=True)
class Source:
    """A schema as it was written, with the texts of all that it refers to, by name."""

    kind: SchemaKind
    text: str
    references: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        return len(self.text) + sum(len(name) + len(text) for name, text in self.references)


class Judge(Protocol):
    """Says what a schema's canonical text is, and what stands against it."""

    def canonical(self, schema: Source) -> str:
        """The text that equal schemas have in common; InvalidSchemaError if it is no schema."""
        ...

    def problems(self, new: Source, earlier: Sequence[Source], mode: Mode) -> list[Problem]:
        """Why a schema may not follow earlier ones, oldest first."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class LocalJudge:
    """Judges in this process, without limits: for schemas that don't come from strangers."""

    def __init__(self) -> None:
        self._parsed: BoundedCache[Source, ParsedSchema] = BoundedCache(_PARSED)

    def canonical(self, schema: Source) -> str:
        return self.parsed(schema).canonical

    def problems(self, new: Source, earlier: Sequence[Source], mode: Mode) -> list[Problem]:
        return check(self.parsed(new), _Parsed(self, earlier), mode)

    def close(self) -> None:
        pass

    def parsed(self, schema: Source) -> ParsedSchema:
        """The parsed schema, kept for the next time."""
        found = self._parsed.get(schema)
        if found is None:
            found = parse(schema.kind, schema.text, dict(schema.references))
            self._parsed.put(schema, found, schema.size)
        return found


@dataclass(frozen=True)
class _Parsed(Sequence[ParsedSchema]):
    """Earlier schemas, each parsed when it is looked at: most modes look at the newest alone."""

    judge: LocalJudge
    sources: Sequence[Source]

    def __len__(self) -> int:
        return len(self.sources)

    @overload
    def __getitem__(self, place: int) -> ParsedSchema: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ParsedSchema]: ...
    def __getitem__(self, place: int | slice) -> ParsedSchema | Sequence[ParsedSchema]:
        if isinstance(place, slice):
            return _Parsed(self.judge, self.sources[place])
        return self.judge.parsed(self.sources[place])
