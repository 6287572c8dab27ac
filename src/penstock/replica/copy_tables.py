"""The tables of a copy: made as the source has them, and changed as it changes them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psycopg

from penstock.capture.tables import Connection, quoted
from penstock.errors import ReplicaError
from penstock.replica.enum_types import EnumTypes
from penstock.replica.ledger import KnownTable, Ledger
from penstock.replica.replica import Replica
from penstock.replica.source_tables import LSN, SourceTable

_REQUIRED = """
SELECT attname::text FROM pg_attribute
WHERE attrelid = %s::int8::oid AND attnum > 0 AND NOT attisdropped AND attnotnull
"""


@dataclass(frozen=True)
class CopyTable:
    """A table of the copy, and the table of the source that it follows."""

    schema: str
    name: str
    source: SourceTable

    @property
    def quoted(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"


class CopyTables:
    """Makes and changes the tables of a copy.

    `read_again` is called with tables of which a change of shape leaves values behind that no record has.
    """

    def __init__(
        self,
        ledger: Ledger,
        replica: Replica,
        read_again: Callable[[str], None],
        log: Callable[[str], None],
    ) -> None:
        self._ledger, self._connection = ledger, ledger.connection
        self._replica, self._read_again, self._log = replica, read_again, log
        self._enums = EnumTypes(self._connection)

    def follow(self, source: SourceTable) -> CopyTable:
        """Make a table, or bring it into the shape that the source has now."""
        source.check()
        table = CopyTable(*self._replica.table(source.path), source)
        wanted = self._types(table)
        known = self._ledger.tables().get(source.path)
        if known is None:
            self._make(table, wanted)
        else:
            self._refuse_other(known)
            self._change(table, known, wanted)
            self._follow_required(table, known.oid)
        return table

    def _types(self, table: CopyTable) -> dict[str, str]:
        """Return the types of the columns in the copy; enumerations are made."""
        self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(table.schema)}")
        for each in table.source.columns:
            if each.declared.enum is not None:
                self._enums.follow(table.schema, each.declared.enum)
        return {each.name: each.declared.in_copy(table.schema, self._knows) for each in table.source.columns}

    def _knows(self, type: str) -> bool:
        return bool(_one(self._connection, "SELECT to_regtype(%s) IS NOT NULL", type))

    def _make(self, table: CopyTable, types: Mapping[str, str]) -> None:
        if _oid(self._connection, table) is not None:
            raise ReplicaError(
                f"there is a table {table.schema}.{table.name} already, which this replica did not make",
                hint="give --schema, or drop it",
            )
        required = {each.name for each in table.source.columns if each.column.required}
        columns = [
            f"{quoted(name)} {type}{' NOT NULL' if name in required else ''}" for name, type in types.items()
        ]
        with self._ledger.writing():
            self._connection.execute(
                f"CREATE TABLE {table.quoted} ({', '.join(columns)}, {LSN} pg_lsn NOT NULL, {_key(table)})"
            )
            self._keep(table, types)

    def _keep(self, table: CopyTable, types: Mapping[str, str]) -> None:
        oid = _oid(self._connection, table) or 0
        known = KnownTable(table.schema, table.name, oid, types, table.source.key)
        self._ledger.keep_table(table.source.path, known)

    def _refuse_other(self, known: KnownTable) -> None:
        row = self._connection.execute(
            "SELECT to_regclass(%s)::int8", [f"{quoted(known.schema)}.{quoted(known.name)}"]
        ).fetchone()
        if row is None or row[0] != known.oid:
            raise ReplicaError(
                f"table {known.schema}.{known.name} was dropped or made again: its rows are gone",
                hint=f"`penstock replica run {self._replica.name} --begin-anew` reads everything again",
            )

    def _change(self, table: CopyTable, known: KnownTable, wanted: Mapping[str, str]) -> None:
        filled = {each.name for each in table.source.columns if each.is_filled}
        added = [name for name in wanted if name not in known.columns]
        retyped = [name for name, type in wanted.items() if known.columns.get(name, type) != type]
        gone = [name for name in known.columns if name not in wanted]
        rekeyed = known.key != table.source.key or any(name in table.source.key for name in retyped)
        if not (added or retyped or gone or rekeyed):
            return
        if retyped or rekeyed or any(name in filled for name in added):
            self._read_again(table.source.path)
        with self._ledger.writing():
            if rekeyed:
                self._connection.execute(f"TRUNCATE {table.quoted}")
                self._connection.execute(
                    f"ALTER TABLE {table.quoted} DROP CONSTRAINT IF EXISTS {_pkey(table)}"
                )
            for name in added:
                self._alter(table, f"ADD COLUMN {quoted(name)} {wanted[name]}")
            for name in retyped:
                self._retype(table, name, wanted[name])
            for name in gone:
                self._drop(table, name)
            if rekeyed:
                self._alter(table, f"ADD {_key(table)}")
            self._keep(table, wanted)

    def _retype(self, table: CopyTable, name: str, type: str) -> None:
        """Give a column another type; what does not fit is null until its row is read again."""
        column = quoted(name)
        try:
            with self._connection.transaction():
                self._alter(table, f"ALTER COLUMN {column} TYPE {type} USING {column}::text::{type}")
        except psycopg.DataError:
            self._alter(table, f"ALTER COLUMN {column} DROP NOT NULL")
            self._alter(table, f"ALTER COLUMN {column} TYPE {type} USING NULL::{type}")

    def _drop(self, table: CopyTable, name: str) -> None:
        """Drop a column as the source did; one that a view needs stays, empty for rows that change."""
        try:
            with self._connection.transaction():
                self._alter(table, f"DROP COLUMN {quoted(name)}")
        except psycopg.errors.DependentObjectsStillExist:
            self._alter(table, f"ALTER COLUMN {quoted(name)} DROP NOT NULL")
            self._log(
                f"column {name} of {table.quoted} stays: something in the copy's database depends on it"
            )

    def _alter(self, table: CopyTable, what: str) -> None:
        self._log(f"{table.schema}.{table.name}: {what}")
        self._connection.execute(f"ALTER TABLE {table.quoted} {what}")

    def _follow_required(self, table: CopyTable, oid: int) -> None:
        """Require values where the source does, as soon as all rows have them."""
        found = {str(row[0]) for row in self._connection.execute(_REQUIRED, [oid])}
        for each in table.source.columns:
            if each.name in table.source.key or each.column.required == (each.name in found):
                continue
            try:
                with self._ledger.writing():
                    word = "SET" if each.column.required else "DROP"
                    self._alter(table, f"ALTER COLUMN {quoted(each.name)} {word} NOT NULL")
            except psycopg.errors.NotNullViolation:
                self._log(f"{table.schema}.{table.name}: {each.name} has nulls still")

    def allow_null(self, table: CopyTable, name: str) -> None:
        """Take a record without a value for a column that has one in every row of the source now."""
        with self._ledger.writing():
            self._alter(table, f"ALTER COLUMN {quoted(name)} DROP NOT NULL")

    def empty(self) -> None:
        """Empty all tables, and make those again that are gone."""
        for path, known in self._ledger.tables().items():
            table = f"{quoted(known.schema)}.{quoted(known.name)}"
            found = _one(self._connection, "SELECT to_regclass(%s)::int8", table)
            if found == known.oid:
                self._connection.execute(f"TRUNCATE {table}")
            else:
                self._ledger.forget_table(path)


def _one(connection: Connection, query: str, *arguments: object) -> object:
    row = connection.execute(query, arguments).fetchone()
    return None if row is None else row[0]


def _oid(connection: Connection, table: CopyTable) -> int | None:
    found = _one(connection, "SELECT to_regclass(%s)::int8", table.quoted)
    return int(str(found)) if found is not None else None


def _key(table: CopyTable) -> str:
    columns = ", ".join(quoted(each) for each in table.source.key)
    return f"CONSTRAINT {_pkey(table)} PRIMARY KEY ({columns})"


def _pkey(table: CopyTable) -> str:
    return quoted(f"{table.name.encode()[:50].decode(errors='ignore')}_pkey")
