"""The tables of a source as its catalogue has them now."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.capture.slot import Source
from penstock.capture.tables import Column, TableShape
from penstock.errors import ReplicaError
from penstock.replica.declared_types import DeclaredType, DeclaredTypes
from penstock.replica.spelling import lost

LSN = "_lsn"  # the column of a copy with the place of each row's change
_COLUMNS = """
select attname::text, atttypid::int8, atttypmod,
       atthasdef or atthasmissing or attidentity <> '' or attgenerated <> '' or attnotnull
from pg_attribute where attrelid = %s::int8::oid and attnum > 0 and not attisdropped
"""
_FINGERPRINT = """
select md5(coalesce(string_agg(concat_ws(' ', a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod,
    a.attnotnull, a.attisdropped, i.indkey, c.relreplident), ',' order by a.attrelid, a.attnum), '')
    || (select coalesce(string_agg(concat(e.enumtypid, e.enumlabel), ',' order by e.oid), '') from pg_enum e))
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
left join pg_index i on i.indrelid = a.attrelid and i.indisprimary
where n.nspname || '.' || c.relname = any(%s) and a.attnum > 0
"""


@dataclass(frozen=True)
class SourceColumn:
    """A column that is in the records; `is_filled` if rows from before it may have a value in it."""

    column: Column
    declared: DeclaredType
    is_filled: bool

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True)
class SourceTable:
    """A table of the source with its declared types."""

    shape: TableShape
    columns: tuple[SourceColumn, ...]

    @property
    def path(self) -> str:
        return self.shape.path

    @property
    def key(self) -> tuple[str, ...]:
        return self.shape.key

    def check(self) -> None:
        """Refuse a table that can't be copied, with the reason."""
        if not self.key:
            raise ReplicaError(
                f"table {self.path!r} has no primary key: a copy could not find the row that a change is of",
                hint="add a key, or make a unique index its replica identity, or leave it out of the capture",
            )
        for each in self.columns:
            if each.name == LSN:
                raise ReplicaError(
                    f"table {self.path!r} has a column {LSN!r}, which copies have of their own",
                    hint="rename it, or leave the table out of the capture",
                )
            if each.name not in self.key and (reason := lost(each.column.type)):
                raise ReplicaError(
                    f"column {each.name!r} of {self.path!r} is a {each.declared.spelled}: {reason}",
                    hint="make it bit(n) or text, or leave the table out of the capture",
                )


def source_table(source: Source, path: str) -> SourceTable:
    """Ask the catalogue about a table."""
    shape = source.catalogue.shape(path)
    found = {row[0]: row[1:] for row in source.connection.execute(_COLUMNS, [shape.oid])}
    kept = [each for each in shape.columns if each.name in found]
    types = DeclaredTypes(source.connection).resolve(found[each.name][:2] for each in kept)
    columns = (
        SourceColumn(each, type, bool(found[each.name][2])) for each, type in zip(kept, types, strict=True)
    )
    return SourceTable(shape, tuple(columns))


def fingerprint(source: Source, paths: Sequence[str]) -> str:
    """Return a sum of what the catalogue says of tables: where it changes, they are to be looked at."""
    row = source.connection.execute(_FINGERPRINT, [list(paths)]).fetchone()
    return str(row[0]) if row else ""
