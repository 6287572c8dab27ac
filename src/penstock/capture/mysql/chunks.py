"""Rows of a table as they are at one place of the log: by ranges of the primary key."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.capture.mysql.catalogue import sql_path
from penstock.capture.mysql.packed import bits, double, shortest
from penstock.capture.mysql.server import Server, quoted
from penstock.capture.pgoutput import Values
from penstock.capture.tables import Column, TableShape
from penstock.capture.types import Type
from penstock.errors import CaptureError

Key = tuple[str, ...]
_ZEROS = re.compile(rb"^0+(?=\d)")
_INTEGERS = ("int2", "int4", "int8", "uint8")
_NUMBERS = (*_INTEGERS, "numeric")
_ORDERED = (*_NUMBERS, "text", "blob", "date", "timestamp", "timestamptz", "span")


@dataclass
class Chunk:
    """The rows behind the key `after`, at most `size`; of a table that can't be divided, all."""

    shape: TableShape
    size: int
    after: Key | None = None
    last: Key | None = None
    rows: int = 0
    end: Key | None = None  # the key of the last row that was read

    @property
    def is_final(self) -> bool:
        return not is_ordered(self.shape) or self.rows < self.size

    def read(self, server: Server) -> Iterator[Values]:
        """Yield the rows; they are counted."""
        spell, places = [_spelling(each.type) for each in self.shape.columns], self.shape.key_places
        row: Values = []
        for found in server.rows(self._query(server)):
            self.rows += 1
            row = [
                value if value is None or make is None else make(value)  # type: ignore[arg-type]
                for value, make in zip(found, spell, strict=True)
            ]
            yield row
        if row and is_ordered(self.shape):
            self.end = tuple(_key_text(row[place], self.shape.columns[place].type) for place in places)

    def _query(self, server: Server) -> str:
        columns = ", ".join(_selected(each) for each in self.shape.columns)
        query = f"SELECT {columns} FROM {sql_path(self.shape.path)}"  # noqa: S608
        if not is_ordered(self.shape):
            return query
        limits = [_beyond(server, self.shape, self.after)] if self.after else []
        limits += [f"NOT ({_beyond(server, self.shape, self.last)})"] if self.last else []
        where = f" WHERE {' AND '.join(f'({each})' for each in limits)}" if limits else ""
        order = ", ".join(quoted(each) for each in self.shape.key)
        return f"{query}{where} ORDER BY {order} LIMIT {self.size}"


def is_ordered(shape: TableShape) -> bool:
    """Whether a table can be read in its key's order: choices and floats sort otherwise than they read."""
    return bool(shape.key) and all(
        each.type.name in _ORDERED and not each.type.is_enum for each in shape.key_columns
    )


def _beyond(server: Server, shape: TableShape, key: Key) -> str:
    """The condition that a row is behind a key; to compare rows as such, the server uses no index."""
    names = [quoted(each) for each in shape.key]
    texts = [_literal(server, column, text) for column, text in zip(shape.key_columns, key, strict=True)]
    found = []
    for place in range(len(names)):
        same = [f"{names[each]} = {texts[each]}" for each in range(place)]
        found.append(" AND ".join([*same, f"{names[place]} > {texts[place]}"]))
    return f"{names[0]} >= {texts[0]} AND ({' OR '.join(f'({each})' for each in found)})"


def _literal(server: Server, column: Column, text: str) -> str:
    """A key's value as SQL; what is given for a number has to be one."""
    if column.type.name in _NUMBERS:
        if not text.replace(".", "", 1).removeprefix("-").isdigit():
            raise CaptureError(f"{text!r} is not a value of column {column.name!r}", hint="give a number")
        return text
    if column.type.name == "blob":
        return f"X'{bytes.fromhex(text).hex()}'"
    return server.literal(text.removesuffix("+00") if column.type.name == "timestamptz" else text)


def _key_text(value: object, type: Type) -> str:
    found = value if isinstance(value, bytes) else b""
    return found.hex() if type.name == "blob" else found.decode()


def _selected(column: Column) -> str:
    """A column as it is asked for: floats in full."""
    name = quoted(column.name)
    return f"CAST({name} AS DOUBLE)" if column.type.name == "float4" else name


def _without_zeros(value: bytes) -> bytes:
    return _ZEROS.sub(b"", value) if value[:1] == b"0" else value


def _spelling(type: Type) -> Callable[[bytes], bytes] | None:
    """Return what brings a value of an answer to what the log would give; None where it is the same."""
    if type.name == "float4":
        return lambda value: shortest(float(value))
    if type.name == "float8":
        return lambda value: double(float(value))
    if type.name == "timestamptz":
        return lambda value: value + b"+00"
    if type.name == "bit":
        return lambda value: bits(value, type.modifier)
    if type.name in _INTEGERS:  # years and columns with ZEROFILL have zeros before them
        return lambda value: b"%d" % int(value)
    if type.name == "numeric":
        return _without_zeros
    return None
