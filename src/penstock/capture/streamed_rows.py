"""Rows that a slot's stream has still to bring: a snapshot that is read later leaves them out."""

from collections import Counter
from collections.abc import Iterator

from penstock.capture import lsn as lsns
from penstock.capture import pgoutput
from penstock.capture.pgoutput import Change, Relation, Value, Values
from penstock.capture.records import completed
from penstock.capture.slot import Source
from penstock.capture.tables import TableShape

_PEEK = """
select data from pg_logical_slot_peek_binary_changes(
    %s, %s::pg_lsn, null, 'proto_version', '1', 'publication_names', %s
)
"""
_AT_ONCE = 1000
_Key = tuple[Value, ...]


class StreamedRows:
    """The rows of a table that are inserted between two places of the stream, by their key.

    Of a table without a key they are known by all of their values, and counted.
    """

    def __init__(self, source: Source, shape: TableShape, first: int, last: int) -> None:
        self._path = shape.path
        self._names = shape.key or tuple(each.name for each in shape.columns)
        self._places = [[each.name for each in shape.columns].index(name) for name in self._names]
        self._left: Counter[_Key] = Counter()
        for change, places in self._changes(source, first, last):
            self._follow(change, places)

    def take(self, row: Values) -> bool:
        """Say whether the stream brings a row that was read; each one that it brings counts once."""
        return self._drop(tuple(row[place] for place in self._places))

    def _follow(self, change: Change, places: list[int | None]) -> None:
        """Count what is inserted, as what it becomes; what was there before stays uncounted."""
        before, after = (_key(row, places) for row in (change.before, change.after))
        is_new = change.op == "c" or (before is not None and self._drop(before))
        if is_new and after is not None:
            self._left[after] += 1

    def _drop(self, key: _Key) -> bool:
        if not self._left[key]:
            return False
        self._left[key] -= 1
        return True

    def _changes(self, source: Source, first: int, last: int) -> Iterator[tuple[Change, list[int | None]]]:
        commit, places = 0, dict[int, list[int | None]]()
        for data in _peeked(source, last):
            kind = chr(data[0])
            if kind == "B":
                commit = pgoutput.begin(data).commit_lsn
            elif kind == "R" and _path(relation := pgoutput.relation(data)) == self._path:
                places[relation.id] = self._places_in(relation)
            elif kind in "IUD" and first <= commit < last and pgoutput.number(data, 1) in places:
                change = completed(pgoutput.change(data))
                yield change, places[change.relation]

    def _places_in(self, relation: Relation) -> list[int | None]:
        """Where the names are in rows of a relation, which may lack some that were added since."""
        places: dict[str, int] = {each.name: place for place, each in enumerate(relation.columns)}
        return [places.get(name) for name in self._names]


def _peeked(source: Source, last: int) -> Iterator[bytes]:
    """Yield the messages of the slot up to a place; they stay in it, and come again."""
    wanted = [source.slot_name, lsns.spell(last), f'"{source.publication}"']
    with source.connection.transaction(), source.connection.cursor("streamed") as cursor:
        cursor.itersize = _AT_ONCE
        for (data,) in cursor.execute(_PEEK, wanted, binary=True):
            yield bytes(data)


def _key(row: Values | None, places: list[int | None]) -> _Key | None:
    return None if row is None else tuple(None if at is None else row[at] for at in places)


def _path(relation: Relation) -> str:
    return f"{relation.schema}.{relation.table}"
