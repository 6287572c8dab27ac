"""Whether data written with one Avro schema can be read with another, by the specification's rules."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from penstock.schemas.compatibility.avro.promotion import (
    logical_problems,
    primitive_problems,
    promotable,
    type_mismatch,
)
from penstock.schemas.compatibility.avro.types import (
    Array,
    AvroSchema,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Resolved,
    Type,
    Union,
    label,
    short,
)
from penstock.schemas.compatibility.problem import Problem


def read_problems(reader: AvroSchema, writer: AvroSchema) -> list[Problem]:
    """Why the reader can't read everything the writer writes; empty if it can."""
    resolution = _Resolution(reader, writer)
    root = reader.resolve(reader.root)
    path = short(root.name) if isinstance(root, Named) else ""
    return list(resolution.problems(reader.root, writer.root, path))


@dataclass(frozen=True)
class _Resolution:
    reader: AvroSchema
    writer: AvroSchema
    # A pair of records met again inside itself, or elsewhere, has been reported already.
    seen: set[tuple[str, str]] = field(default_factory=set)

    def problems(self, reader: Type, writer: Type, path: str) -> Iterator[Problem]:
        mine, theirs = self.reader.resolve(reader), self.writer.resolve(writer)
        if isinstance(theirs, Union):
            for branch in theirs.branches:
                yield from self.problems(reader, branch, path)
        elif isinstance(mine, Union):
            yield from self._from_union(mine, writer, theirs, path)
        else:
            yield from self._pair(mine, theirs, path)

    def _from_union(self, reader: Union, writer: Type, theirs: Resolved, path: str) -> Iterator[Problem]:
        matching = [branch for branch in reader.branches if _matches(self.reader.resolve(branch), theirs)]
        if not matching:
            message = (
                f"the writer may write {label(theirs)}, which is none of the reader's branches "
                f"({label(reader)[9:]}); add the branch to the reader's union"
            )
            yield Problem(path, "union-branch-missing", message)
        for branch in self._taken(matching, theirs):
            yield from self.problems(branch, writer, path)

    def _taken(self, matching: list[Type], writer: Resolved) -> list[Type]:
        # The specification takes the first branch that matches, Java's library an exact one if there
        # is any: both must work.
        exact = [branch for branch in matching if _exact(self.reader.resolve(branch), writer)]
        return list(dict.fromkeys([*matching[:1], *exact]))

    def _pair(self, reader: Resolved, writer: Resolved, path: str) -> Iterator[Problem]:
        match reader, writer:
            case Primitive(), Primitive():
                yield from primitive_problems(reader, writer, path)
            case Array(), Array():
                yield from self.problems(reader.items, writer.items, f"{path}[]")
            case Map(), Map():
                yield from self.problems(reader.values, writer.values, f"{path}{{}}")
            case _ if isinstance(reader, Named) and isinstance(writer, Named) and _one_kind(reader, writer):
                yield from self._named(reader, writer, path)
            case _:
                yield type_mismatch(reader, writer, path)

    def _named(self, reader: Named, writer: Named, path: str) -> Iterator[Problem]:
        if not _same_name(reader, writer):
            message = (
                f"the writer's {label(writer)} has another name than the reader's {label(reader)}; "
                f"keep the name, or give the reader the alias {writer.name!r}"
            )
            yield Problem(path, "name-mismatch", message)
        match reader, writer:
            case Record(), Record():
                yield from self._records(reader, writer, path)
            case Enum(), Enum():
                yield from _enum_problems(reader, writer, path)
            case Fixed(), Fixed():
                yield from _fixed_problems(reader, writer, path)

    def _records(self, reader: Record, writer: Record, path: str) -> Iterator[Problem]:
        if (reader.name, writer.name) in self.seen:
            return
        self.seen.add((reader.name, writer.name))
        pairing = _Pairing.of(reader, writer)
        for mine in reader.fields:
            yield from self._field(mine, pairing, writer, f"{path}.{mine.name}")

    def _field(self, mine: Field, pairing: "_Pairing", writer: Record, path: str) -> Iterator[Problem]:
        theirs = pairing.written_for(mine)
        if len(theirs) > 1 or pairing.claimed_twice(theirs):
            yield _ambiguous(theirs, path)
        elif theirs:
            yield from self.problems(mine.type, theirs[0].type, path)
        elif not mine.has_default:
            message = (
                f"the reader's field {mine.name!r} is not in the writer's {label(writer)} and has no "
                "default; give the field a default"
            )
            yield Problem(path, "reader-field-missing-default", message)


@dataclass(frozen=True)
class _Pairing:
    """The writer's fields by name, and how many of the reader's fields claim each name."""

    written: dict[str, tuple[int, Field]]
    claims: Counter[str]

    @classmethod
    def of(cls, reader: Record, writer: Record) -> "_Pairing":
        written = {other.name: (place, other) for place, other in enumerate(writer.fields)}
        return cls(written, Counter(name for mine in reader.fields for name in {mine.name, *mine.aliases}))

    def written_for(self, mine: Field) -> list[Field]:
        """The writer's fields of this name or alias, in the writer's order."""
        names = {mine.name, *mine.aliases} & self.written.keys()
        return [other for _, other in sorted((self.written[name] for name in names), key=itemgetter(0))]

    def claimed_twice(self, theirs: list[Field]) -> bool:
        return any(self.claims[other.name] > 1 for other in theirs)


def _ambiguous(theirs: list[Field], path: str) -> Problem:
    names = ", ".join(repr(other.name) for other in theirs)
    message = (
        f"the writer's {names} could be read into more than one field, or more than one into this; "
        "give each writer's field one name or alias in the reader"
    )
    return Problem(path, "field-alias-ambiguous", message)


def _matches(reader: Resolved, writer: Resolved) -> bool:
    match reader, writer:
        case Primitive(), Primitive():
            return promotable(reader, writer)
        case (Array(), Array()) | (Map(), Map()):
            return True
        case Fixed(), Fixed():
            return _same_name(reader, writer) and reader.size == writer.size
        case Record(), Record():
            return _same_name(reader, writer)
        case Enum(), Enum():
            return _same_name(reader, writer)
        case _:
            return False


def _exact(reader: Resolved, writer: Resolved) -> bool:
    # Types with names match only within their own kind, so the names decide.
    named = Primitive | Fixed | Enum | Record
    return isinstance(reader, named) and isinstance(writer, named) and reader.name == writer.name


def _same_name(reader: Named, writer: Named) -> bool:
    return short(reader.name) == short(writer.name) or writer.name in reader.aliases


def _one_kind(reader: Named, writer: Named) -> bool:
    return type(reader) is type(writer)


def _enum_problems(reader: Enum, writer: Enum, path: str) -> Iterator[Problem]:
    unknown = [symbol for symbol in writer.symbols if symbol not in reader.known]
    if unknown and reader.default is None:
        message = (
            f"the writer's symbols {', '.join(unknown)} are unknown to the reader's {label(reader)}; "
            "add them, or give the enum a default"
        )
        yield Problem(path, "enum-symbol-missing", message)


def _fixed_problems(reader: Fixed, writer: Fixed, path: str) -> Iterator[Problem]:
    if reader.size != writer.size:
        message = (
            f"the writer's {label(writer)} has {writer.size} bytes, the reader's {reader.size}; keep the size"
        )
        yield Problem(path, "fixed-size-changed", message)
    yield from logical_problems(reader, writer, path)
