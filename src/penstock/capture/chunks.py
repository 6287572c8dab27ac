"""Chunks of a table: its rows by ranges of the primary key, read as the stream would spell them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.capture.pgoutput import Values
from penstock.capture.tables import Connection, TableShape, quoted

Key = tuple[str, ...]
_ESCAPE = re.compile(rb"\\(.)")
_ESCAPED = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


@dataclass(frozen=True)
class Chunk:
    """The rows behind the key `after`, up to `last`; without them, from the beginning or to the end."""

    shape: TableShape
    after: Key | None = None
    last: Key | None = None
    is_final: bool = True

    def rows(self, connection: Connection) -> Iterator[Values]:
        """Read the rows in the order of their key."""
        columns = ", ".join(quoted(each.name) for each in self.shape.columns)
        return copied_rows(connection, f"SELECT {columns} FROM {self.shape.quoted}{self._where()}")  # noqa: S608

    def _where(self) -> str:
        if not self.shape.key:
            return ""
        limits = [
            f"{key_row(self.shape)} {sign} {key_literal(self.shape, key)}"
            for sign, key in ((">", self.after), ("<=", self.last))
            if key is not None
        ]
        where = f" WHERE {' AND '.join(limits)}" if limits else ""
        return f"{where} ORDER BY {_order(self.shape)}"


def chunks(
    connection: Connection, shape: TableShape, size: int, after: Key | None = None, last: Key | None = None
) -> Iterator[Chunk]:
    """Yield the chunks behind a key, of about so many rows each; a table without a key is one chunk."""
    if not shape.key:
        yield Chunk(shape)
        return
    while True:
        end = next_end(connection, shape, size, after, last)
        yield Chunk(shape, after, end or last, end is None)
        if end is None:
            return
        after = end


def next_end(
    connection: Connection, shape: TableShape, size: int, after: Key | None, last: Key | None
) -> Key | None:
    """Return the key so many rows behind another; None where the table, or the range, ends before."""
    places = ", ".join(f"{quoted(each)}::text" for each in shape.key)
    limits = [
        f"{key_row(shape)} {sign} {key_literal(shape, key)}"
        for sign, key in ((">", after), ("<", last))
        if key is not None
    ]
    where = f" WHERE {' AND '.join(limits)}" if limits else ""
    order = f" ORDER BY {_order(shape)} OFFSET {size - 1} LIMIT 1"
    row = connection.execute(f"SELECT {places} FROM {shape.quoted}{where}{order}").fetchone()  # noqa: S608
    return None if row is None else tuple(row)


def copied_rows(connection: Connection, query: str) -> Iterator[Values]:
    """Yield the rows of a query as the stream would spell them, which a cast to text does not always."""
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT") as copied:
        for line in copied:
            yield copied_row(bytes(line))


def copied_row(line: bytes) -> Values:
    r"""Return the values of a line of COPY.

    >>> copied_row(b"1\t\\N\ta\\tb\n")
    [b'1', None, b'a\tb']
    """
    fields: Values = line[:-1].split(b"\t")  # type: ignore[assignment]
    if b"\\" not in line:
        return fields
    return [None if each == rb"\N" else _unescaped(each) for each in fields]  # type: ignore[arg-type]


def _unescaped(field: bytes) -> bytes:
    if b"\\" not in field:
        return field
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), field)


def _order(shape: TableShape) -> str:
    return ", ".join(quoted(each) for each in shape.key)


def key_row(shape: TableShape, of: str = "") -> str:
    """Return the key's columns as SQL."""
    return "(" + ", ".join(of + quoted(each) for each in shape.key) + ")"


def key_literal(shape: TableShape, key: Key) -> str:
    """A key as SQL; PostgreSQL gives each text the type of its column."""
    values = ", ".join("'" + each.replace("'", "''") + "'" for each in key)
    return f"({values})" if len(shape.key) == 1 else f"ROW({values})"
