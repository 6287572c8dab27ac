"""A table of a source and its copy: how keys and rows of both are spelled alike, to be compared."""

from dataclasses import dataclass

from penstock.capture.tables import Connection, quoted
from penstock.capture.types import Type
from penstock.errors import ReplicaError, TryAgainError
from penstock.replica.declared_types import DeclaredType
from penstock.replica.ledger import KnownTable
from penstock.replica.source_tables import SourceTable

_COLLATIONS = """
select a.attname::text, a.attcollation <> 0, coalesce(c.collname = 'default', true)
from pg_attribute a left join pg_collation c on c.oid = a.attcollation
where a.attrelid = %s::int8::oid and a.attnum > 0
"""
_LOCALE = """
select concat_ws('|', d->>'datcollate', d->>'datlocprovider', d->>'datlocale', d->>'daticulocale',
                 d->>'datcollversion')
from (select to_jsonb(p) as d from pg_database p where datname = current_database()) x
"""


@dataclass(frozen=True)
class ComparedTable:
    """A table on both sides, with the expressions that stand for its key and its columns on either.

    `order` has what keys are compared by: the columns, or their bytes where both sides sort them differently.
    """

    path: str
    source: str
    copy: str
    key: tuple[str, ...]
    order: tuple[str, ...]
    columns: dict[str, str]

    @property
    def is_sorted(self) -> bool:
        """Whether both sides sort keys as the source's index does."""
        return self.order == self.key

    @property
    def hash(self) -> str:
        """The number that stands for a row."""
        row = ", ".join(self.columns.values())
        return f"('x' || left(md5(row({row})::text), 15))::bit(60)::int8"


def compared_table(
    source: Connection, copy: Connection, table: SourceTable, known: KnownTable | None
) -> ComparedTable:
    """Return how a table is compared."""
    missing = [each.name for each in table.columns if known is None or each.name not in known.columns]
    if known is None or missing:
        raise TryAgainError(
            f"the copy has no {table.path if known is None else f'column {missing[0]} of {table.path}'} yet",
            hint="does the replica run?",
        )
    if known.key != table.key:
        raise ReplicaError(f"{table.path} has another key by now", hint="let the replica run first")
    alike = _alike(source, copy, table)
    declared = {each.name: each.declared for each in table.columns}
    return ComparedTable(
        table.path,
        table.shape.quoted,
        f"{quoted(known.schema)}.{quoted(known.name)}",
        tuple(quoted(name) for name in table.key),
        tuple(_ordered(name, declared[name], is_alike=name in alike) for name in table.key),
        {each.name: _spelled(quoted(each.name), each.column.type) for each in table.columns},
    )


def _alike(source: Connection, copy: Connection, table: SourceTable) -> set[str]:
    """The columns that both databases sort alike."""
    same_locale = _one(source, _LOCALE) == _one(copy, _LOCALE)
    found = source.execute(_COLLATIONS, [table.shape.oid]).fetchall()
    return {name for name, has, is_default in found if not has or (is_default and same_locale)}


def _ordered(name: str, declared: DeclaredType, *, is_alike: bool) -> str:
    if is_alike and not declared.foreign:
        return quoted(name)
    return f'({quoted(name)}::text COLLATE "C")'


def _spelled(name: str, type: Type) -> str:
    """A column as text: zones of timetz and bounds of arrays, which a copy has not, are left out."""
    if type.element is not None and type.element.name == "timetz":
        items = f"array(SELECT (x AT TIME ZONE 'UTC')::text FROM unnest({name}) x)"  # noqa: S608
        return f"CASE WHEN {name} IS NOT NULL THEN {items}::text END"
    if type.element is not None:
        return f"to_json({name}::text[])::text"
    return f"({name} AT TIME ZONE 'UTC')::text" if type.name == "timetz" else f"{name}::text"


def _one(connection: Connection, query: str) -> object:
    row = connection.execute(query).fetchone()
    return row[0] if row else None
