"""One side of a table that is compared: its sums by ranges, and its rows."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from penstock.capture.tables import Connection
from penstock.replica.compared_table import ComparedTable
from penstock.replica.key_range import Key, KeyRange, literal

T = TypeVar("T")
_PIECE = 500  # keys in one query


class TableSide:
    """A table in the source or in the copy."""

    def __init__(self, connection: Connection, table: ComparedTable, name: str) -> None:
        self._connection, self._table, self._name = connection, table, name
        self._key = ", ".join(f"{each}::text" for each in table.key)

    def sum(self, range: KeyRange) -> tuple[int, int]:
        """Return how many rows a range has, and the sum of their hashes, whatever their order."""
        what = f"count(*), coalesce(sum({self._table.hash}), 0)"
        row = self._connection.execute(self._select(what, range)).fetchone()
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def rows(self, range: KeyRange) -> dict[Key, int]:
        """Return the hashes of a range's rows by their keys."""
        found = self._connection.execute(self._select(f"{self._table.hash}, {self._key}", range))
        return {tuple(key): int(hash) for hash, *key in found}

    def ranges(self, within: KeyRange, size: int) -> Iterator[KeyRange]:
        """Yield the ranges of about so many rows each that a range is made of."""
        after = within.after
        while True:
            rest = KeyRange(after, within.last)
            where, order = rest.where(self._table.order, within=False), ", ".join(self._table.order)
            row = self._connection.execute(
                f"SELECT {self._key} FROM {self._name}{where} ORDER BY {order} OFFSET {size - 1} LIMIT 1"  # noqa: S608
            ).fetchone()
            if row is None:
                yield rest
                return
            yield KeyRange(after, tuple(row))
            after = tuple(row)

    def found(self, keys: Iterable[Key]) -> dict[Key, tuple[int, str]]:
        """Return the hashes of rows that are there, and their versions, which change with every write."""
        found: dict[Key, tuple[int, str]] = {}
        for piece in pieces(keys, _PIECE):
            what = f"{self._table.hash}, xmin::text || ctid::text, {self._key}"
            rows = self._connection.execute(f"SELECT {what} FROM {self._name} WHERE {self._are(piece)}")  # noqa: S608
            found |= {tuple(key): (int(hash), str(version)) for hash, version, *key in rows}
        return found

    def spelled(self, key: Key) -> dict[str, str | None]:
        """Return a row's columns as text."""
        columns = self._table.columns
        row = self._connection.execute(
            f"SELECT {', '.join(columns.values())} FROM {self._name} WHERE {self._are([key])}"  # noqa: S608
        ).fetchone()
        return dict(zip(columns, row or [None] * len(columns), strict=True))

    def _are(self, keys: Sequence[Key]) -> str:
        return f"({', '.join(self._table.key)}) IN ({', '.join(literal(each) for each in keys)})"

    def _select(self, what: str, range: KeyRange) -> str:
        return f"SELECT {what} FROM {self._name}{range.where(self._table.order)}"  # noqa: S608


def pieces(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of up to so many items."""
    rest = iter(items)
    while piece := list(islice(rest, size)):
        yield piece
