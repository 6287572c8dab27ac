"""A table that was rebuilt takes the place of the one at work, in one transaction."""

from psycopg.sql import SQL, Identifier

from penstock.errors import TargetError
from penstock.settings import Settings
from penstock.targets.postgres.connection import Connection, asking, connect
from penstock.targets.postgres.table import DeclaredTable

_EXISTS = "SELECT to_regclass(%s) IS NOT NULL"
# What refers to a table itself, and would go on with the old one under its new name.
_REFERRED = """
    SELECT EXISTS (SELECT FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
            WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = t AND r.ev_class <> t)
        OR EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND (conrelid = t OR confrelid = t))
        OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t AND NOT tgisinternal)
        OR EXISTS (SELECT FROM pg_policy WHERE polrelid = t)
        OR EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = t)
        OR (SELECT relkind = 'p' OR relispartition FROM pg_class WHERE oid = t)
    FROM to_regclass(%s) AS t"""
_GRANTS = """
    SELECT privilege_type, CASE WHEN grantee = 0 THEN NULL ELSE pg_get_userbyid(grantee)::text END,
        is_grantable
    FROM pg_class, aclexplode(relacl) WHERE oid = to_regclass(%s)::oid AND grantee <> relowner"""
_COLUMNS = """
    SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass(%s)::oid AND attnum > 0
        AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"""


def swap(table: DeclaredTable, rebuilt: DeclaredTable, settings: Settings) -> None:
    """Put a table in the place of another; if views or the like refer to that one, its rows are replaced."""
    with (
        asking("swap tables"),
        connect(table.address(settings), "rebuild") as connection,
        connection.transaction(),
    ):
        if not _is(connection, _EXISTS, rebuilt):
            return  # it was swapped before
        if not _is(connection, _EXISTS, table):
            _rename(connection, table, rebuilt)
        elif _is(connection, _REFERRED, table):
            _replace_rows(connection, table, rebuilt)
        else:
            _grant(connection, table, rebuilt)
            connection.execute(SQL("DROP TABLE {}").format(table.identifier))
            _rename(connection, table, rebuilt)


def _rename(connection: Connection, table: DeclaredTable, rebuilt: DeclaredTable) -> None:
    """Give the table its name; those of its indexes are of no matter."""
    name = Identifier(table.path[1])
    connection.execute(SQL("ALTER TABLE {} RENAME TO {}").format(rebuilt.identifier, name))


def _replace_rows(connection: Connection, table: DeclaredTable, rebuilt: DeclaredTable) -> None:
    """Readers wait meanwhile: a table that is emptied is locked until the transaction ends."""
    names = {row[0] for row in connection.execute(_COLUMNS, [_name(rebuilt)])}
    there = {row[0] for row in connection.execute(_COLUMNS, [_name(table)])}
    if missing := names - there:
        raise TargetError(
            f"table {table.name!r} lacks the column {min(missing)!r} of what was rebuilt",
            hint="add it, then run the rebuild again: it goes on here",
        )
    columns = SQL(", ").join(map(Identifier, sorted(names)))
    connection.execute(SQL("TRUNCATE {}").format(table.identifier))
    connection.execute(
        SQL("INSERT INTO {} ({columns}) SELECT {columns} FROM {}").format(
            table.identifier, rebuilt.identifier, columns=columns
        )
    )
    connection.execute(SQL("DROP TABLE {}").format(rebuilt.identifier))


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
