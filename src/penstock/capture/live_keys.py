"""The keys that a compacted topic holds rows of: what has to be deleted when the table is emptied."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing

from penstock.capture.debezium_records import TRUNCATED
from penstock.log import Broker
from penstock.log.cursor import Cursor
from penstock.settings import Settings

_ADD, _REMOVE = "insert or ignore into live values (?)", "delete from live where key = ?"


def live_keys(
    settings: Settings,
    topic: str,
    start: Mapping[int, int],
    older_than: Mapping[int, int] | None = None,
) -> Iterator[bytes]:
    """Yield the keys whose newest record is a row, of those with nothing from the given offsets on.

    Before `start` no row is left: the table was emptied there. The keys are kept in a file meanwhile, because
    there may be many.
    """
    with Cursor(topic, settings) as cursor, closing(sqlite3.connect("")) as store:
        store.execute("create table live (key blob primary key) without rowid")
        firsts = cursor.beginnings()
        cursor.go_to({each: max(first, start.get(each, 0)) for each, first in firsts.items()})
        # A commit is answered before its marks are everywhere: what is written counts, decided or not.
        ends = {partition: end for partition, (_, end) in Broker(settings).offsets(topic).items()}
        for each in cursor.read_to(ends):
            if (key := each.key()) not in (None, TRUNCATED):
                is_old = older_than is None or each.offset() < older_than.get(each.partition(), 0)
                is_live = is_old and each.value() is not None
                store.execute(_ADD if is_live else _REMOVE, [key])
        yield from (row[0] for row in store.execute("select key from live"))
