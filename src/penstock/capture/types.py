"""PostgreSQL's types, as the catalogue has them: what a column's number stands for."""

from collections.abc import Iterable
from dataclasses import dataclass

import psycopg

_QUERY = """
with recursive wanted as (
    select t.* from pg_type t where t.oid = any(%s)
    union
    select t.* from pg_type t join wanted w on t.oid in (w.typbasetype, w.typelem)
)
select oid::int8, typname::text, typtype::text, typbasetype::int8, typtypmod, typelem::int8,
       typcategory::text, typdelim::text
from wanted
"""


@dataclass(frozen=True)
class Type:
    """A type by its own name, domains by the name of what they stand for.

    `modifier` is what the column's declaration adds: digits of a number, precision of a time. An array has an
    `element`. Dates of MySQL may have a zero for year, month or day (`zeroes`), which is no date.
    """

    name: str
    modifier: int = -1
    element: "Type | None" = None
    is_enum: bool = False
    zeroes: bool = False

    @property
    def precision(self) -> int:
        """How many digits a time has behind the second."""
        return self.modifier if 0 <= self.modifier <= 6 else 6

    @property
    def scale(self) -> int | None:
        """How many digits a number has behind the point; None where its declaration does not say."""
        if self.name == "money":
            return 2
        if self.name != "numeric" or self.modifier < 4:
            return None
        scale = (self.modifier - 4) & 0x7FF
        return scale - 0x800 if scale & 0x400 else scale

    @property
    def digits(self) -> int | None:
        """How many digits a number has in all."""
        return (self.modifier - 4) >> 16 & 0xFFFF if self.name == "numeric" and self.modifier >= 4 else None


UNKNOWN = Type("unknown")


class Types:
    """The types of a database, asked for once."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection
        self._rows: dict[int, tuple[str, str, int, int, int, str, str]] = {}

    def resolve(self, columns: Iterable[tuple[int, int]]) -> list[Type]:
        """Return the types of columns, given by (number, modifier)."""
        wanted = list(columns)
        missing = [oid for oid, _ in wanted if oid not in self._rows]
        if missing:
            for oid, *row in self._connection.execute(_QUERY, [missing]):
                self._rows[int(oid)] = tuple(row)  # type: ignore[call-overload, assignment]
        return [self._resolved(oid, modifier) for oid, modifier in wanted]

    def forget(self) -> None:
        """Ask again: a type may have been made anew."""
        self._rows.clear()

    def _resolved(self, oid: int, modifier: int) -> Type:
        if oid not in self._rows:
            return UNKNOWN  # it was dropped since
        name, kind, base, own_modifier, element, category, delimiter = self._rows[oid]
        if kind == "d":
            return self._resolved(base, own_modifier)
        if category == "A" and element and delimiter == ",":  # others are rare, and stay text
            return Type(name, modifier, self._resolved(element, modifier))
        return Type(name, modifier, is_enum=kind == "e")
