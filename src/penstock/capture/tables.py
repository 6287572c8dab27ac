"""The tables that are captured: their columns and keys, as the catalogue or the stream describes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from penstock.capture.pgoutput import Relation
from penstock.capture.types import Type, Types
from penstock.errors import CaptureError

Connection = psycopg.Connection[tuple[Any, ...]]

_TABLES = """
select n.nspname, c.relname, c.oid::int8, c.relreplident::text, c.relkind::text, c.relispartition,
       (case when c.reltuples > 0 then c.reltuples else pg_relation_size(c.oid) / 100 end)::int8 + coalesce((
           select sum(case when p.reltuples > 0 then p.reltuples else pg_relation_size(p.oid) / 100 end)::int8
           from pg_partition_tree(c.oid) t join pg_class p on p.oid = t.relid
           where t.isleaf and p.oid <> c.oid
       ), 0),
       pg_total_relation_size(c.oid) + coalesce((
           select sum(pg_total_relation_size(t.relid))::int8 from pg_partition_tree(c.oid) t where t.isleaf
       ), 0),
       exists (select from pg_inherits i where i.inhparent = c.oid) and c.relkind = 'r'
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %s and c.relname = %s
"""
_COLUMNS = """
select attname, atttypid::int8, atttypmod, attnotnull, attgenerated::text
from pg_attribute where attrelid = %s::int8::oid and attnum > 0 and not attisdropped order by attnum
"""
_KEY = """
select array_agg(a.attname::text order by k.place)
from pg_class c join pg_index i on i.indrelid = c.oid,
unnest(i.indkey) with ordinality k(number, place)
join pg_attribute a on a.attnum = k.number
where c.oid = %s::int8::oid and a.attrelid = c.oid and k.place <= i.indnkeyatts
  and case when c.relreplident = 'i' then i.indisreplident else i.indisprimary end
"""

_SMALL, _WIDE = 32 * 1024 * 1024, 64 * 1024  # bytes, of a chunk and of a row that nothing is known of


@dataclass(frozen=True)
class Column:
    """A column; a generated one is in the stream only if the publication says so."""

    name: str
    type: Type
    required: bool = False
    generated: bool = False


@dataclass(frozen=True)
class TableShape:
    """A table at one time: its columns in order, and those of its key.

    That is the primary key, or the index that is its replica identity: deletions have no other columns.
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    oid: int = 0

    @property
    def key_spelling(self) -> tuple[str, ...]:
        """The names and types of the key: where they change, so do the keys of all records."""
        return tuple(f"{each.name} {each.type.name}" for each in self.key_columns)

    @property
    def path(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def key_places(self) -> list[int]:
        """Where in a row the key's columns are, in the order of the key."""
        places = {each.name: place for place, each in enumerate(self.columns)}
        return [places[name] for name in self.key]

    @property
    def key_columns(self) -> list[Column]:
        return [self.columns[place] for place in self.key_places]

    @property
    def quoted(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"


@dataclass(frozen=True)
class TableFacts:
    """What the catalogue knows of a table besides its shape."""

    oid: int
    identity: str  # the replica identity: d, n, f or i
    partitioned: bool
    rows: int  # about as many
    size: int  # in bytes, with its large values

    def chunk(self, wanted: int) -> int:
        """Return how many rows are read at once: as many as wanted, if they are not large."""
        if self.size < _SMALL:
            return wanted
        width = self.size // max(self.rows, 1) if self.rows else _WIDE
        return max(1, min(wanted, _SMALL // max(width, 1)))


class Catalogue:
    """Asks a database about its tables."""

    def __init__(self, connection: Connection, generated: bool) -> None:
        self._connection, self._generated = connection, generated
        self._types = Types(connection)

    def facts(self, path: str) -> TableFacts:
        """Return what is known of a table, or say that it can't be captured."""
        schema, _, name = path.partition(".")
        row = self._connection.execute(_TABLES, [schema, name]).fetchone()
        if row is None:
            raise CaptureError(
                f"there is no table {path!r} in the database",
                hint="name tables with their schema, as public.orders; are they in another database?",
            )
        _, _, oid, identity, kind, is_part, rows, size, has_children = row
        if kind not in ("r", "p") or is_part:
            what = "a partition: name the table that it is a part of" if is_part else "no table"
            raise CaptureError(f"{path!r} is {what}", hint="views and foreign tables can't be captured")
        if has_children:
            raise CaptureError(
                f"{path!r} has children by inheritance, whose rows are in no change of it",
                hint="capture them, or make it a partitioned table",
            )
        return TableFacts(oid, identity, kind == "p", rows, size)

    def shape(self, path: str) -> TableShape:
        """Return a table as it is now, with the columns that the stream has of it."""
        schema, _, name = path.partition(".")
        oid = self.facts(path).oid
        found = self._connection.execute(_COLUMNS, [oid]).fetchall()
        rows = [row for row in found if not row[4] or (self._generated and row[4] == "s")]
        types = self._types.resolve((oid, modifier) for _, oid, modifier, _, _ in rows)
        columns = tuple(
            Column(name, type, required, bool(generated))
            for (name, _, _, required, generated), type in zip(rows, types, strict=True)
        )
        return TableShape(schema, name, columns, self._key(oid, [each.name for each in columns]), oid)

    def shape_of(self, relation: Relation) -> TableShape:
        """Return the table that the stream describes, with what the catalogue knows of its types.

        The columns of the replica identity are the key; where that is the whole row, the primary key.
        """
        self._types.forget()
        types = self._types.resolve((each.type, each.modifier) for each in relation.columns)
        required = self._required(relation.id)
        columns = tuple(
            Column(each.name, type, each.name in required)
            for each, type in zip(relation.columns, types, strict=True)
        )
        sent = tuple(each.name for each in relation.columns if each.in_key)
        known = self._key(relation.id, [each.name for each in relation.columns])
        is_known = relation.identity not in "di" or set(known) == set(sent)
        key = known if is_known else sent  # in the order of its index
        return TableShape(relation.schema, relation.table, columns, key, relation.id)

    def _key(self, oid: int, names: Sequence[str]) -> tuple[str, ...]:
        row = self._connection.execute(_KEY, [oid]).fetchone()
        key = tuple(row[0]) if row and row[0] else ()
        return key if all(name in names for name in key) else ()

    def _required(self, oid: int) -> set[str]:
        return {row[0] for row in self._connection.execute(_COLUMNS, [oid]) if row[3]}


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def listed(paths: Iterable[str]) -> str:
    """Return tables as SQL takes them, with a comma between."""
    split = (path.partition(".") for path in paths)
    return ", ".join(f"{quoted(schema)}.{quoted(name)}" for schema, _, name in split)
