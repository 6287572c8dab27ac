"""The target table: made from a flow's results, grown with them, or checked against them."""

from collections.abc import Sequence

from psycopg.sql import SQL, Composable, Identifier

from penstock.errors import TargetError
from penstock.targets.postgres.columns import TableColumn, definition
from penstock.targets.postgres.connection import Connection
from penstock.targets.postgres.table import DeclaredTable

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))"
_FIND = """
    SELECT c.oid, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s"""
_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod),
        attnotnull AND NOT atthasdef AND attidentity = ''
    FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped"""
_UNIQUE = """
    SELECT array(SELECT attname::text FROM pg_attribute WHERE attrelid = indrelid
        AND attnum = ANY(indkey[0:indnkeyatts - 1]))
    FROM pg_index WHERE indrelid = %s AND indisunique AND indisvalid AND indimmediate
        AND indpred IS NULL AND indexprs IS NULL"""
# Types of columns that take the values of another without loss or doubt.
_WIDER = {
    "text": ("character varying",),
    "smallint": ("integer", "bigint"),
    "integer": ("bigint",),
    "real": ("double precision",),
}


def prepare(connection: Connection, table: DeclaredTable, columns: Sequence[TableColumn]) -> None:
    """Make the table if it is missing, or see that it takes the columns; two processes may do so at once."""
    with connection.transaction():
        connection.execute("SET LOCAL lock_timeout = '60s'")
        connection.execute(_LOCK, [".".join(table.path)])
        found = connection.execute(_FIND, table.path).fetchone()
        if found is None:
            _create(connection, table, columns)
        else:
            oid, kind = found
            _check_kind(table, kind)
            _check_key(connection, table, oid)
            _grow(connection, table, columns, oid)


def _create(connection: Connection, table: DeclaredTable, columns: Sequence[TableColumn]) -> None:
    if table.like is not None and _has_key(connection, table, _path(table.like)):
        like = SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(
            table.identifier, Identifier(*_path(table.like))
        )
        connection.execute(like)
        made = connection.execute(_FIND, table.path).fetchone()
        _grow(connection, table, columns, made[0] if made else 0)
        return
    parts: list[Composable] = [definition(column.name, column.kind) for column in columns]
    if keys := primary_key(table, columns):
        parts.append(SQL("PRIMARY KEY ({})").format(SQL(", ").join(map(Identifier, keys))))
    connection.execute(SQL("CREATE TABLE {} ({})").format(table.identifier, SQL(", ").join(parts)))


def _has_key(connection: Connection, table: DeclaredTable, path: tuple[str, str]) -> bool:
    """Whether there is a table by whose constraints rows can be put: not where the key is another one."""
    found = connection.execute(_FIND, path).fetchone()
    return found is not None and (table.write == "append" or _is_unique(connection, table, found[0]))


def _path(name: str) -> tuple[str, str]:
    schema, dot, table = name.rpartition(".")
    return (schema, table) if dot else ("public", table)


def primary_key(table: DeclaredTable, columns: Sequence[TableColumn]) -> tuple[str, ...]:
    """Return the columns that identify a row: the key of an upsert, or `id` where rows are appended."""
    if table.write == "upsert":
        return table.keys
    return ("id",) if any(column.name == "id" for column in columns) else ()


def _grow(connection: Connection, table: DeclaredTable, columns: Sequence[TableColumn], oid: int) -> None:
    """Add the columns that are new in the flow; refuse those that are different, or missing in the flow."""
    there = {name: (kind, needed) for name, kind, needed in connection.execute(_COLUMNS, [oid])}
    for column in columns:
        if column.name not in there:
            change = SQL("ALTER TABLE {} ADD COLUMN {}").format(
                table.identifier, definition(column.name, column.kind)
            )
            connection.execute(change)
        else:
            _check_type(table, column, there[column.name][0])
    for name in there.keys() - {column.name for column in columns}:
        if there[name][1]:
            raise TargetError(
                f"table {table.name!r} has a column {name!r} that must not be null, and the flow has none",
                hint="give it a default, drop NOT NULL, or add it to the flow",
            )


def _check_type(table: DeclaredTable, column: TableColumn, seen: str) -> None:
    wide = ("numeric",) if column.kind.startswith("numeric") else _WIDER.get(column.kind, ())
    if seen != column.kind and seen not in wide:
        raise TargetError(
            f"table {table.name!r} has column {column.name!r} of type {seen}, the flow needs {column.kind}",
            hint="cast it in the flow, change the column's type, or write to another table",
        )


def _check_kind(table: DeclaredTable, kind: str) -> None:
    if kind not in ("r", "p"):
        raise TargetError(
            f"{table.name!r} is not a table (pg_class.relkind is {kind!r})", hint="name a table"
        )


def repeatable(connection: Connection, table: DeclaredTable) -> tuple[str, ...]:
    """Return the columns by which a row to append is known to be there already, if it may be."""
    if table.write != "append" or table.repeated != "skip":
        return ()
    found = connection.execute(_FIND, table.path).fetchone()
    return ("id",) if found and ("id",) in _unique(connection, found[0]) else ()


def _check_key(connection: Connection, table: DeclaredTable, oid: int) -> None:
    if table.write == "upsert" and not _is_unique(connection, table, oid):
        raise TargetError(
            f"table {table.name!r} has no unique constraint on ({', '.join(table.keys)}); "
            f"unique are {_unique(connection, oid) or 'no columns'}",
            hint="add a primary key or a unique constraint on the key, or choose another key",
        )


def _is_unique(connection: Connection, table: DeclaredTable, oid: int) -> bool:
    return any(set(names) == set(table.keys) for names in _unique(connection, oid))


def _unique(connection: Connection, oid: int) -> list[tuple[str, ...]]:
    return [tuple(names) for (names,) in connection.execute(_UNIQUE, [oid])]
