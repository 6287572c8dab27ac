"""Rows that are gone without a change of their own: of a table that was emptied, or captured anew."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from penstock.capture.output import Output
from penstock.capture.position import Position
from penstock.capture.records import Origin, Records
from penstock.log.transactional_writer import Message

_PIECE = 10_000


def delete_rows(
    output: Output, records: Records, path: str, position: Position, origin: Origin, lsn: int
) -> None:
    """Delete the rows that a topic has of a table, in pieces; begun again, it goes on with those left."""
    older_than = dict(position.tables[path].sweep) if path in position.tables else {}
    keys = output.live_keys(path, older_than or None)
    while piece := list(islice(keys, _PIECE)):
        output.write(_deleted(records, piece, origin, lsn), position)


def swept(output: Output, records: Records, path: str, position: Position, origin: Origin) -> Position:
    """Delete what was gone before a snapshot was taken again; return the position when that is done."""
    delete_rows(output, records, path, position, origin, position.lsn)
    done = position.with_table(path, replace(position.tables[path], done=True, sweep={}))
    output.write([], done)
    return done


def _deleted(records: Records, keys: list[bytes], origin: Origin, lsn: int) -> Iterator[Message]:
    for key in keys:
        yield from records.deletion(key, origin, lsn)
