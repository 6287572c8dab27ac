"""The types of a source's columns as they were declared, and what stands for them in a copy."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from penstock.capture.tables import Connection, quoted

# What names things of its own database: the names are kept as text.
_REFERENCES = (
    "regclass", "regcollation", "regconfig", "regdictionary", "regnamespace", "regoper", "regoperator",
    "regproc", "regprocedure", "regrole", "regtype",
)  # fmt: skip
_TYPES = """
with recursive wanted as (
    select t.* from pg_type t where t.oid = any(%s)
    union
    select t.* from pg_type t join wanted w on t.oid in (w.typbasetype, w.typelem)
)
select w.oid::int8, n.nspname::text, w.typname::text, w.typtype::text, w.typbasetype::int8, w.typtypmod,
       w.typelem::int8, w.typcategory::text,
       array(select e.enumlabel::text from pg_enum e where e.enumtypid = w.oid order by e.enumsortorder)
from wanted w join pg_namespace n on n.oid = w.typnamespace
"""
_SPELLED = "select format_type(%s::int8::oid, %s)"


@dataclass(frozen=True)
class EnumType:
    """An enumeration: its name, and its labels in their order."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class DeclaredType:
    """A type as SQL spells it, domains as what they stand for.

    `foreign` is the name of a type that PostgreSQL does not have by itself: a copy may not know it.
    """

    spelled: str
    enum: EnumType | None = None
    foreign: str = ""
    is_array: bool = False

    def in_copy(self, schema: str, knows: Callable[[str], bool]) -> str:
        """Return what stands for it in a copy: enumerations are in its schema, what is not known is text."""
        if self.enum is not None:
            found = f"{quoted(schema)}.{quoted(self.enum.name)}"
        else:
            found = "text" if self.foreign and not knows(self.foreign) else self.spelled
        return f"{found}[]" if self.is_array else found


class DeclaredTypes:
    """Asks a source about its types."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: dict[int, tuple[str, str, str, int, int, int, str, list[str]]] = {}

    def resolve(self, columns: Iterable[tuple[int, int]]) -> list[DeclaredType]:
        """Return the types of columns, given by (number, modifier)."""
        wanted = list(columns)
        for oid, *row in self._connection.execute(_TYPES, [[oid for oid, _ in wanted]]):
            self._rows[int(oid)] = tuple(row)
        return [self._resolved(oid, modifier) for oid, modifier in wanted]

    def _resolved(self, oid: int, modifier: int) -> DeclaredType:
        if oid not in self._rows:
            return DeclaredType("text")  # it was dropped since
        schema, name, kind, base, own_modifier, element, category, labels = self._rows[oid]
        if kind == "d":
            return self._resolved(base, own_modifier)
        if category == "A" and element:
            return replace(self._resolved(element, modifier), is_array=True)
        if kind == "e":
            return DeclaredType("", EnumType(name, tuple(labels)))
        if schema == "pg_catalog" and name in _REFERENCES:
            return DeclaredType("text")
        foreign = "" if schema == "pg_catalog" else f"{quoted(schema)}.{quoted(name)}"
        return DeclaredType(self._spelled(oid, modifier), foreign=foreign)

    def _spelled(self, oid: int, modifier: int) -> str:
        row = self._connection.execute(_SPELLED, [oid, modifier]).fetchone()
        return str(row[0]) if row else "text"
