"""A table that was rebuilt takes the place of the one at work, in one transaction."""

import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
from psycopg.errors import LockNotAvailable
from psycopg.sql import SQL, Composed, Identifier

from penstock.errors import SinkError, TargetError
from penstock.settings import Settings
from penstock.targets.postgres.connection import Connection, asking, connect, explain
from penstock.targets.postgres.table import DeclaredTable

_EXISTS = "SELECT to_regclass(%s) IS NOT NULL"
# What refers to a table itself, or is said of it, and would not come along with a new one of its name.
_REFERRED = """
    SELECT EXISTS (SELECT FROM pg_depend d WHERE d.refobjid IN (t, c.reltype, (
            SELECT typarray FROM pg_type WHERE oid = c.reltype)) AND d.deptype IN ('n', 'a')
            AND d.classid NOT IN ('pg_constraint'::regclass, 'pg_attrdef'::regclass, 'pg_type'::regclass)
            AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (
                SELECT indexrelid FROM pg_index WHERE indrelid = t)))
        OR EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND (conrelid = t OR confrelid = t))
        OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t AND NOT tgisinternal)
        OR EXISTS (SELECT FROM pg_policy WHERE polrelid = t)
        OR EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = t)
        OR EXISTS (SELECT FROM pg_inherits WHERE inhrelid = t OR inhparent = t)
        OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = t AND (attacl IS NOT NULL OR attidentity <> ''))
        OR c.relkind = 'p' OR c.relrowsecurity OR c.relforcerowsecurity OR c.relreplident <> 'd'
        OR c.reloptions IS NOT NULL OR pg_get_userbyid(c.relowner) <> current_user
    FROM to_regclass(%s) AS t JOIN pg_class c ON c.oid = t"""
_GRANTS = """
    SELECT privilege_type, CASE WHEN grantee = 0 THEN NULL ELSE pg_get_userbyid(grantee)::text END,
        is_grantable
    FROM pg_class, aclexplode(relacl) WHERE oid = to_regclass(%s)::oid AND grantee <> relowner"""
_COLUMNS = """
    SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass(%s)::oid AND attnum > 0
        AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"""
_NOTE = """
    INSERT INTO penstock.ledger (sink, epoch, checkpoint) VALUES (%s, 0, %s)
    ON CONFLICT (sink) DO UPDATE SET checkpoint = excluded.checkpoint, at = now()"""
# What was noted last; of two swaps of a table the second one waits here, and sees what the first has done.
_NOTED = """
    INSERT INTO penstock.ledger (sink, epoch) VALUES (%s, 0) ON CONFLICT (sink) DO UPDATE SET at = now()
    RETURNING checkpoint"""
_HOLDERS = """
    SELECT string_agg(format('process %%s of %%s (%%s)', pid, usename, application_name), ', ')
    FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND pid IN (
        SELECT pid FROM pg_locks WHERE granted AND relation = to_regclass(%s)::oid
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""
_SECONDS, _TRIES, _PAUSE = 2, 5, 1.0  # for a lock: whoever would read the table waits behind us meanwhile


def swap(
    table: DeclaredTable, rebuilt: DeclaredTable, settings: Settings, kept: DeclaredTable | None = None
) -> None:
    """Put a table in the place of another; if views or the like refer to that one, its rows are replaced.

    What was there is kept as a table of another name, if one is given, or else removed.
    """
    with connect(table.address(settings), "rebuild") as connection:
        try:
            _patiently(connection, table, lambda: _swap(connection, table, rebuilt, kept))
        except psycopg.OperationalError as error:
            raise explain("swap tables", error) from error
        except psycopg.Error as error:
            raise TargetError(
                f"table {table.name!r} can't be replaced by {rebuilt.name!r}: {error}",
                hint="mend that, then run the rebuild again: it goes on here",
            ) from error


def remove(table: DeclaredTable, settings: Settings) -> None:
    """Drop a table that was made beside another, if it is there."""
    drop = SQL("DROP TABLE IF EXISTS {}").format(table.identifier)
    with connect(table.address(settings), "rebuild") as connection, asking("drop a table"):
        _patiently(connection, table, lambda: connection.execute(drop))


def column_names(table: DeclaredTable, settings: Settings) -> tuple[str, ...]:
    """Return the columns of a table; none if it is not there."""
    with connect(table.address(settings), "diff") as connection, asking("read a table"):
        return tuple(row[0] for row in connection.execute(_COLUMNS, [_name(table)]))


def _patiently(connection: Connection, table: DeclaredTable, change: Callable[[], object]) -> None:
    """Change a table in a transaction that waits for locks briefly, a few times."""
    for _ in range(_TRIES):
        with suppress(LockNotAvailable), connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{_SECONDS}s'".encode())
            change()
            return
        time.sleep(_PAUSE)
    raise _held(connection, table)


def _held(connection: Connection, table: DeclaredTable) -> SinkError:
    (found,) = connection.execute(_HOLDERS, [_name(table)]).fetchone() or (None,)
    return SinkError(
        f"table {table.name!r} can't be changed: it is held by {found or 'another transaction'}",
        hint="let that end, or end it with `select pg_terminate_backend(PROCESS)`; then run the same command "
        "again: it goes on here",
    )


def _swap(
    connection: Connection, table: DeclaredTable, rebuilt: DeclaredTable, kept: DeclaredTable | None
) -> None:
    note = f"swap of {table.name}"
    found = connection.execute(_NOTED, [note]).fetchone()
    if not _is(connection, _EXISTS, rebuilt):
        if found is None or found[0] != rebuilt.name:
            raise TargetError(
                f"there is no table {rebuilt.name!r}, which was rebuilt",
                hint="somebody dropped it: add --discard to rebuild once more",
            )
        return  # it was swapped before
    if not _is(connection, _EXISTS, table):
        _rename(connection, table, rebuilt)
    elif _is(connection, _REFERRED, table):
        if kept is not None:
            _copy(connection, table, kept)
        _replace_rows(connection, table, rebuilt)
    else:
        _grant(connection, table, rebuilt)
        if kept is None:
            connection.execute(SQL("DROP TABLE {}").format(table.identifier))
        else:
            _rename(connection, kept, table)
        _rename(connection, table, rebuilt)
    connection.execute(_NOTE, [note, rebuilt.name])


def _rename(connection: Connection, table: DeclaredTable, rebuilt: DeclaredTable) -> None:
    """Give the table its name; those of its indexes are of no matter."""
    name = Identifier(table.path[1])
    connection.execute(SQL("ALTER TABLE {} RENAME TO {}").format(rebuilt.identifier, name))


def _copy(connection: Connection, table: DeclaredTable, kept: DeclaredTable) -> None:
    """Keep the rows of a table that has to stay as another one with the same indexes."""
    names = [row[0] for row in connection.execute(_COLUMNS, [_name(table)])]
    columns = SQL(", ").join(map(Identifier, names))
    like = SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)")
    connection.execute(like.format(kept.identifier, table.identifier))
    copy = SQL("INSERT INTO {} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {}")
    connection.execute(copy.format(kept.identifier, table.identifier, columns=columns))


def _replace_rows(connection: Connection, table: DeclaredTable, rebuilt: DeclaredTable) -> None:
    """Make the rows those of the rebuilt table: by their key, so that what refers to a row keeps it.

    Triggers of users do not fire: nothing has happened that they have not seen.
    """
    names = [row[0] for row in connection.execute(_COLUMNS, [_name(rebuilt)])]
    there = {row[0] for row in connection.execute(_COLUMNS, [_name(table)])}
    if missing := set(names) - there:
        raise TargetError(
            f"table {table.name!r} lacks the column {min(missing)!r} of what was rebuilt",
            hint="add it, then run the rebuild again: it goes on here",
        )
    live = table.identifier
    connection.execute(SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(live))
    connection.execute(_gone(table, rebuilt))
    connection.execute(_put(table, rebuilt, names))
    connection.execute(SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(live))
    connection.execute(SQL("DROP TABLE {}").format(rebuilt.identifier))


def _gone(table: DeclaredTable, rebuilt: DeclaredTable) -> Composed:
    if table.write != "upsert":
        return SQL("DELETE FROM {}").format(table.identifier)
    same = _same(table.keys)
    return SQL("DELETE FROM {} AS t WHERE NOT EXISTS (SELECT FROM {} AS s WHERE {})").format(
        table.identifier, rebuilt.identifier, same
    )


def _put(table: DeclaredTable, rebuilt: DeclaredTable, names: list[str]) -> Composed:
    columns = SQL(", ").join(map(Identifier, names))
    insert = SQL("INSERT INTO {} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {}").format(
        table.identifier, rebuilt.identifier, columns=columns
    )
    rest = [name for name in names if name not in table.keys]
    if table.write != "upsert":
        return insert
    keys = SQL(", ").join(map(Identifier, table.keys))
    if not rest:
        return insert + SQL(" ON CONFLICT ({}) DO NOTHING").format(keys)
    sets = SQL(", ").join(SQL("{0} = excluded.{0}").format(Identifier(name)) for name in rest)
    return insert + SQL(" ON CONFLICT ({}) DO UPDATE SET {}").format(keys, sets)


def _same(keys: tuple[str, ...]) -> Composed:
    pairs = (SQL("t.{0} = s.{0}").format(Identifier(key)) for key in keys)
    return SQL(" AND ").join(pairs)


def _grant(connection: Connection, table: DeclaredTable, rebuilt: DeclaredTable) -> None:
    """Give everybody the rights that they had on the table."""
    for privilege, role, grantable in connection.execute(_GRANTS, [_name(table)]).fetchall():
        whom = SQL("PUBLIC") if role is None else Identifier(role)
        option = SQL(" WITH GRANT OPTION" if grantable else "")
        grant = SQL("GRANT {} ON {} TO {}{}").format(SQL(privilege), rebuilt.identifier, whom, option)
        connection.execute(grant)


def _is(connection: Connection, question: str, table: DeclaredTable) -> bool:
    found = connection.execute(question.encode(), [_name(table)]).fetchone()
    return bool(found and found[0])


def _name(table: DeclaredTable) -> str:
    return ".".join('"{}"'.format(part.replace('"', '""')) for part in table.path)
