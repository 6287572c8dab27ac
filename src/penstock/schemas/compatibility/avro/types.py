"""Avro's types as frozen values; named types are referred to by their full name."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from penstock.documents import Json

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class _Missing:
    """The absence of a default, which may itself be null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


@dataclass(frozen=True)
class Logical:
    """A logical type; precision and scale count for decimals only."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True)
class Primitive:
    name: str
    logical: Logical | None = None


@dataclass(frozen=True)
class Array:
    items: "Type"


@dataclass(frozen=True)
class Map:
    values: "Type"


@dataclass(frozen=True)
class Union:
    branches: tuple["Type", ...]


@dataclass(frozen=True)
class Reference:
    """A named type, by its full name."""

    name: str


@dataclass(frozen=True)
class Fixed:
    name: str
    aliases: tuple[str, ...]
    size: int
    logical: Logical | None = None


@dataclass(frozen=True)
class Enum:
    name: str
    aliases: tuple[str, ...]
    symbols: tuple[str, ...]
    default: str | None

    @cached_property
    def known(self) -> frozenset[str]:
        """The symbols, to be looked up."""
        return frozenset(self.symbols)


@dataclass(frozen=True)
class Field:
    name: str
    aliases: tuple[str, ...]
    type: "Type"
    default: Json = MISSING

    @property
    def has_default(self) -> bool:
        """Whether a reader can fill the field in by itself."""
        return self.default is not MISSING


@dataclass(frozen=True)
class Record:
    name: str
    aliases: tuple[str, ...]
    fields: tuple[Field, ...]


Named = Fixed | Enum | Record
Type = Primitive | Array | Map | Union | Reference
Resolved = Primitive | Array | Map | Union | Fixed | Enum | Record


@dataclass(frozen=True)
class AvroSchema:
    """An Avro schema: its outermost type, and every named type in it."""

    root: Type
    names: Mapping[str, Named]
    canonical: str

    def resolve(self, type_: Type) -> Resolved:
        """The type itself where a reference only names it."""
        return self.names[type_.name] if isinstance(type_, Reference) else type_


def short(name: str) -> str:
    """A full name without its namespace."""
    return name.rpartition(".")[2]


def label(type_: Resolved | Type) -> str:
    """A type as a reader would say it: `long`, `record Order`, `array`."""
    match type_:
        case Primitive(name, None):
            return name
        case Primitive(name, Logical(logical)):
            return f"{name} ({logical})"
        case Union(branches):
            return "union of " + ", ".join(label(branch) for branch in branches)
        case Reference(name):
            return name
        case Array() | Map():
            return type(type_).__name__.lower()
        case _:
            return f"{type(type_).__name__.lower()} {type_.name}"
