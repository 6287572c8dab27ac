"""The tables that are captured, as the server's catalogue has them, or its log."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.capture.mysql.charsets import is_known, unknown
from penstock.capture.mysql.server import Server, quoted
from penstock.capture.mysql.table_map import TableMap
from penstock.capture.mysql.types import SPECIAL, declared_type, mapped_type
from penstock.capture.tables import Column, TableShape
from penstock.errors import CaptureError

_TABLE = """
select table_schema, table_name, table_type, engine, coalesce(table_rows, 0), coalesce(avg_row_length, 0)
from information_schema.tables where table_schema = %s and table_name = %s
"""
_COLUMNS = """
select column_name, data_type, column_type, coalesce(numeric_precision, 0), coalesce(numeric_scale, 0),
       coalesce(datetime_precision, 0), is_nullable, character_set_name
from information_schema.columns where table_schema = %s and table_name = %s order by ordinal_position
"""
_KEY = """
select column_name, sub_part from information_schema.statistics
where table_schema = %s and table_name = %s and index_name = 'PRIMARY' order by seq_in_index
"""
# Of what SHOW CREATE TABLE gives, as the catalogue's own views show foreign keys only to who may change them.
_FOREIGN_KEY = re.compile(
    r"^\s*CONSTRAINT `((?:[^`]|``)+)` FOREIGN KEY .* REFERENCES .*\)((?: ON (?:DELETE|UPDATE) [A-Z ]+?)+),?$",
    re.MULTILINE,
)
_CHANGES = ("CASCADE", "SET NULL", "SET DEFAULT")
_HIDDEN = re.compile(r"DB_ROW_HASH_\d+")  # the server's own columns, for unique keys over long texts
_SAFE = ("InnoDB",)
_SMALL = 16 * 1024 * 1024  # bytes of a chunk


@dataclass(frozen=True)
class TableFacts:
    """What the catalogue knows of a table besides its shape."""

    rows: int  # about as many
    width: int  # of a row in bytes, about

    def chunk(self, wanted: int) -> int:
        """Return how many rows are read at once: as many as wanted, if they are not large."""
        return max(1, min(wanted, _SMALL // max(self.width, 1)))


class Catalogue:
    """Asks a server about its tables."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def facts(self, path: str) -> TableFacts:
        """Return what is known of a table, or say that it can't be captured."""
        found = self._server.ask(_TABLE, *_split(path))
        if not found:
            raise CaptureError(
                f"there is no table {path!r}, or the user may not read it",
                hint="name tables with their database, as shop.orders; "
                "`penstock capture role NAME` prints the rights",
            )
        database, name, kind, engine, rows, width = found[0]
        if path != f"{database}.{name}":
            raise CaptureError(
                f"table {path!r} is {database}.{name} in the server, and so in its log",
                hint="spell it as the server does: capital letters count",
            )
        if kind != "BASE TABLE":
            raise CaptureError(f"{path!r} is a {str(kind).lower()}", hint="only plain tables can be captured")
        if engine not in _SAFE:
            raise CaptureError(
                f"table {path!r} has the engine {engine}: what is read of it has no place in the log",
                hint=f"ALTER TABLE {path} ENGINE = InnoDB",
            )
        self.refuse_cascades(path)
        return TableFacts(int(rows or 0), int(width or 0))

    def refuse_cascades(self, path: str) -> None:
        """What a foreign key does to rows by itself is not in the log."""
        for name, rules in _cascades(self._created(path)):
            raise CaptureError(
                f"the foreign key {name!r} of {path!r} changes rows by itself ({rules}), and MariaDB does "
                "not log that",
                hint="make it RESTRICT, and let the application delete the rows; if it has changed any, "
                "`penstock capture run NAME --snapshot-again` writes all rows again",
            )

    def _created(self, path: str) -> str:
        """Return the statement that would make a table; nothing if it is gone."""
        if not self._server.ask(_TABLE, *_split(path)):
            return ""
        return str(self._server.ask(f"SHOW CREATE TABLE {sql_path(path)}")[0][1])

    def shape(self, path: str) -> TableShape:
        """Return a table as it is now."""
        self.facts(path)
        columns = []
        for name, data, spelled, digits, scale, precision, optional, charset in self._columns(path):
            if charset is not None and not is_known(charset):
                raise unknown(charset, name)
            type = declared_type(data, spelled, int(digits), int(scale), int(precision))
            columns.append(Column(name, type, optional == "NO"))
        key = tuple(str(name) for name, _ in self._server.ask(_KEY, *_split(path)))
        database, name = _split(path)
        return TableShape(database, name, tuple(columns), key)

    def shape_of(self, mapped: TableMap, special: dict[str, str]) -> TableShape:
        """Return a table as the log describes it."""
        columns = tuple(
            Column(each.name, mapped_type(each, special.get(each.name, "")), not each.optional)
            for each in mapped.columns
            if not is_hidden(each.name)
        )
        key = tuple(mapped.columns[place].name for place in mapped.key)
        return TableShape(mapped.database, mapped.name, columns, key)

    def special(self, path: str) -> dict[str, str]:
        """Return the columns whose values the log has as bytes, though they are none."""
        return {name: data for name, data, *_ in self._columns(path) if data in SPECIAL}

    def _columns(self, path: str) -> list[tuple[str, ...]]:
        return self._server.ask(_COLUMNS, *_split(path))  # type: ignore[return-value]


def is_hidden(column: str) -> bool:
    """Whether a column is one that the server has made for itself, which no query shows."""
    return _HIDDEN.fullmatch(column) is not None


def _cascades(created: str) -> Iterator[tuple[str, str]]:
    for name, rules in _FOREIGN_KEY.findall(created):
        if any(each in rules for each in _CHANGES):
            yield name.replace("``", "`"), rules.strip()


def sql_path(path: str) -> str:
    """Return a table as SQL takes it."""
    database, name = _split(path)
    return f"{quoted(database)}.{quoted(name)}"


def _split(path: str) -> tuple[str, str]:
    database, _, name = path.partition(".")
    return database, name
