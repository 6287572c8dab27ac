"""Rows that are gone without a change of their own: of a table that was emptied, or captured anew."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from penstock.capture.output import Output
from penstock.capture.position import Position
from penstock.capture.records import Deletions, Origin
from penstock.log.transactional_writer import Message

_PIECE = 10_000


def delete_rows(
    output: Output, records: Deletions, keys: Iterator[bytes], position: Position, origin: Origin, lsn: int
) -> None:
    """Delete rows that a topic has, in pieces; begun again, only those are left that were not written."""
    while piece := list(islice(keys, _PIECE)):
        output.write(_deleted(records, piece, origin, lsn), position)


def swept(output: Output, records: Deletions, path: str, position: Position, origin: Origin) -> Position:
    """Delete what was gone before a snapshot was taken again; return the position when that is done."""
    keys = output.live_keys(path, position.tables[path], swept=True)
    delete_rows(output, records, keys, position, origin, position.lsn)
    done = position.with_table(path, replace(position.tables[path], done=True, sweep={}))
    output.write([], done)
    return done


def _deleted(records: Deletions, keys: list[bytes], origin: Origin, lsn: int) -> Iterator[Message]:
    for key in keys:
        yield from records.deletion(key, origin, lsn)
