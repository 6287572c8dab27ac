"""Writes what a batch leaves behind into one table of the copy."""

import re
from collections.abc import Iterable

import msgspec
import psycopg

from penstock.capture import lsn as lsns
from penstock.capture.tables import Connection, quoted
from penstock.replica.copy_tables import CopyTable
from penstock.replica.latest import Latest, Row
from penstock.replica.source_tables import LSN
from penstock.replica.spelling import NULL, Spell, is_key_of, spelling

Line = list[bytes]
_SPECIAL = re.compile(rb"[\\\t\n\r]")
_ESCAPES = {b"\\": rb"\\", b"\t": rb"\t", b"\n": rb"\n", b"\r": rb"\r"}
_NULL = msgspec.Raw(NULL)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class UnknownColumnError(Exception):
    """A record has columns that the copy does not know of: the source's catalogue has to be asked."""


class TableWriter:
    """Deletes and writes rows through a temporary table, which COPY fills.

    `ignored` are columns that records have and the source has no more.
    """

    def __init__(
        self, connection: Connection, table: CopyTable, number: int, ignored: Iterable[str] = ()
    ) -> None:
        self._connection, self.table, self.ignored = connection, table, set(ignored)
        columns = {each.name: each.column for each in table.source.columns}
        self._spell = {name: spelling(each.type) for name, each in columns.items()}
        self._key = [
            (columns[name].type, spelling(columns[name].type, as_key=True)) for name in table.source.key
        ]
        self._stage, self._keys = f"pg_temp._rows_{number}", f"pg_temp._keys_{number}"
        self._plans: dict[tuple[str, ...], list[tuple[str, int, Spell]]] = {}
        self._is_staged = False

    def write(self, latest: Latest) -> None:
        """Delete and write rows; to be called in a transaction."""
        groups: dict[tuple[str, ...], list[tuple[Line, Row, int]]] = {}
        for key, (row, lsn) in latest.rows.items():
            if (values := self._key_of(key)) is not None:
                groups.setdefault(tuple(row), []).append((values, row, lsn))
        for names in groups:
            self._plan(names)  # may find columns that are not known, before anything is written
        self._delete(latest)
        for place, (names, rows) in enumerate(groups.items()):
            if place > 0:
                self._connection.execute(f"DELETE FROM {self._stage}")  # noqa: S608
            self._upsert(self._plan(names), rows)

    def replace_unfit(self, latest: Latest) -> str:
        """Make values null that their columns do not take; return an example, if there are any."""
        example = ""
        for names in {tuple(row) for row, _ in latest.rows.values()}:
            rows = [row for row, _ in latest.rows.values() if tuple(row) == names]
            for name, _, spell in self._plan(names):
                if not self._takes(name, spell, [row[name] for row in rows]):
                    for row in rows:
                        if not self._takes(name, spell, [row[name]]):
                            example = f"{name} = {bytes(row[name])[:80].decode(errors='replace')}"
                            row[name] = _NULL
        return example

    def _takes(self, name: str, spell: Spell, values: list[msgspec.Raw]) -> bool:
        """Whether a column takes values; what was tried is undone."""
        try:
            lines = [[escaped(spell(json))] for each in values if (json := bytes(each)) != NULL]
            with self._connection.transaction(force_rollback=True):
                self._copy(self._stage, [name], lines)
        except (psycopg.DataError, ValueError):  # which a spelling raises
            return False
        return True

    def forget_stage(self) -> None:
        """Drop the temporary tables, before the table is given another shape."""
        self._connection.execute(f"DROP TABLE IF EXISTS {self._stage}, {self._keys}")
        self._is_staged = False

    def _key_of(self, key: bytes) -> Line | None:
        """Return the values of a key; None for one from before the key was changed, which no row has."""
        found = _fields(key)
        names = self.table.source.key
        if len(found) != len(names) or any(name not in found for name in names):
            return None
        values = [bytes(found[name]) for name in names]
        if not all(is_key_of(type, json) for (type, _), json in zip(self._key, values, strict=True)):
            return None
        return [escaped(spell(json)) for (_, spell), json in zip(self._key, values, strict=True)]

    def _plan(self, names: tuple[str, ...]) -> list[tuple[str, int, Spell]]:
        """Which of a row's fields go into which columns; those of the key come from the record's key."""
        if names not in self._plans:
            unknown = [name for name in names if name not in self._spell and name not in self.ignored]
            if unknown:
                raise UnknownColumnError(unknown[0])
            self._plans[names] = [
                (name, place, self._spell[name])
                for place, name in enumerate(names)
                if name in self._spell and name not in self.table.source.key
            ]
        return self._plans[names]

    def prepare(self) -> None:
        """Make the temporary tables, before the transaction: what it undoes is not made again."""
        if self._is_staged:
            return
        for name, columns in ((self._stage, "*"), (self._keys, _listed(self.table.source.key))):
            self._connection.execute(f"DROP TABLE IF EXISTS {name}")
            rows = f"SELECT {columns} FROM {self.table.quoted} WITH NO DATA"  # noqa: S608
            plain = name.removeprefix("pg_temp.")
            self._connection.execute(f"CREATE TEMPORARY TABLE {plain} ON COMMIT DELETE ROWS AS {rows}")
        self._is_staged = True

    def _delete(self, latest: Latest) -> None:
        lines = [line for key in latest.gone if (line := self._key_of(key)) is not None]
        if not lines:
            return
        key = self.table.source.key
        self._copy(self._keys, key, lines)
        same = " AND ".join(f"t.{quoted(each)} = k.{quoted(each)}" for each in key)
        self._connection.execute(
            f"DELETE FROM {self.table.quoted} t USING {self._keys} k WHERE {same}"  # noqa: S608
        )

    def _upsert(self, plan: list[tuple[str, int, Spell]], rows: list[tuple[Line, Row, int]]) -> None:
        key, others = self.table.source.key, [name for name, _, _ in plan]
        columns = (*key, *others, LSN)
        self._copy(self._stage, columns, _lines([(place, spell) for _, place, spell in plan], rows))
        changed = ", ".join(f"{quoted(each)} = excluded.{quoted(each)}" for each in (*others, LSN))
        listed = _listed(columns)
        self._connection.execute(
            f"INSERT INTO {self.table.quoted} ({listed}) SELECT {listed} FROM {self._stage} "  # noqa: S608
            f"ON CONFLICT ({_listed(key)}) DO UPDATE SET {changed}"
        )

    def _copy(self, table: str, columns: Iterable[str], lines: Iterable[Line]) -> None:
        with self._connection.cursor().copy(f"COPY {table} ({_listed(columns)}) FROM STDIN") as copy:
            copy.write(b"".join([b"\t".join(line) + b"\n" for line in lines]))


def _lines(plan: list[tuple[int, Spell]], rows: list[tuple[Line, Row, int]]) -> Iterable[Line]:
    for key, row, lsn in rows:
        values, line = list(row.values()), [*key]
        for place, spell in plan:
            json = bytes(values[place])
            line.append(rb"\N" if json == NULL else escaped(spell(json)))
        line.append(lsns.spell(lsn).encode())
        yield line


def escaped(value: bytes) -> bytes:
    r"""Return a value as COPY takes it.

    >>> escaped(b"a\tb"), escaped(rb"\x00ff")
    (b'a\\tb', b'\\\\x00ff')
    """
    if _SPECIAL.search(value) is None:
        return value
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], value)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(quoted(each) for each in names)
