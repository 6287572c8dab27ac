"""Writing what a stream of transactions brings: batches with their positions, and tables that are emptied."""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Protocol

from penstock.capture.deletions import delete_rows
from penstock.capture.output import Output
from penstock.capture.position import Position, fresh
from penstock.capture.stream import Batch, Truncation
from penstock.capture.tables import TableShape

_MOST_MESSAGES, _MOST_BYTES = 20_000, 16 * 1024 * 1024
_IDLE = 2.0  # seconds: how often a position without records is written
_LOOK_AT_TOPICS = 15.0  # seconds; a client of Kafka's takes new partitions in use after minutes


class Transactions(Protocol):
    """A stream of transactions, and what of it is to be written."""

    position: Position
    batch: Batch

    def checkpoint(self) -> Position:
        """Return the position with all that is in the batch."""


class BatchWriter:
    """Writes the batches of a stream, whichever database it is of; `on_written` gets each position.

    `before_records` is called before records are written, and may wait.
    """

    def __init__(
        self,
        output: Output,
        stream: Transactions,
        on_written: Callable[[Position], None] = lambda _: None,
        before_records: Callable[[], None] = lambda: None,
    ) -> None:
        self._output, self._stream, self._on_written = output, stream, on_written
        self._before_records = before_records
        self.written = stream.position
        self.wrote_at = self._looked_at = time.monotonic()

    def write_if_due(self) -> None:
        """Write the batch if it is large, or if a table was emptied."""
        batch = self._stream.batch
        if batch.truncations:
            self._truncate()
        elif len(batch.messages) >= _MOST_MESSAGES or batch.size >= _MOST_BYTES:
            self.write()

    def write(self) -> None:
        """Write the batch with its position."""
        position, batch = self._stream.checkpoint(), self._stream.batch
        if batch.messages:
            self._before_records()
        self._output.write(batch.messages, position)
        self.wrote(position)

    def wrote(self, position: Position) -> None:
        """Go on behind a position that is in the ledger."""
        self._stream.position, self._stream.batch = position, Batch()
        self.written, self.wrote_at = position, time.monotonic()
        self._on_written(position)

    def moved_on(self, heartbeat: float) -> bool:
        """Write a position that has moved without records, now and then; say whether that was done."""
        is_due = time.monotonic() - self.wrote_at >= min(heartbeat, _IDLE)
        if self._stream.position.lsn <= self.written.lsn or not is_due:
            return False
        self.write()
        return True

    def look_at_topics(self) -> None:
        """Topics that were made again, or have got more partitions, must not be written any further."""
        if time.monotonic() - self._looked_at > _LOOK_AT_TOPICS:
            self._looked_at = time.monotonic()
            self._output.refuse_other_topics(self.written)

    def follow_key(self, shape: TableShape) -> None:
        """Where the key has got other columns or types, all rows are written again under their new keys."""
        known = self._stream.position.tables.get(shape.path)
        if known is None or not known.key or known.key == shape.key_spelling or not shape.key:
            return
        if shape.path not in self._output.capture.tables:
            return  # events of an outbox have no key of the table's, and are sent once
        self.write()  # what was before it belongs to the keys that are to be swept
        again = fresh(replace(known, key=shape.key_spelling), self._output.ends(shape.path))
        self._stream.position = self._stream.position.with_table(shape.path, again)

    def next_request(self) -> None:
        """Begin to read a table, or a range of its keys, again."""
        position = self._stream.position
        request, *others = position.requests
        position = replace(position, requests=tuple(others))
        known = position.tables.get(request.path)
        if known is not None and request.path in self._output.capture.tables and known.key:
            again = fresh(known, {} if request.is_range else self._output.ends(request.path))
            wanted = replace(again, after=request.after, last=request.last, absent=request.absent)
            position = position.with_table(request.path, wanted)
        self._stream.position = position

    def _truncate(self) -> None:
        """Delete the rows of a table that was emptied; all that was before it has to be written first."""
        self._before_records()
        stream = self._stream
        truncations, stream.batch.truncations = stream.batch.truncations, []
        position = stream.checkpoint()
        before = replace(position, index=position.index - 1)
        self._output.write(stream.batch.messages, before)
        stream.batch = Batch()
        for each in truncations:
            self._delete(each, before)
            position = self._emptied(position, each.table.path)
        emptied = [each.table.records.truncation(each.origin, each.lsn) for each in truncations]
        emptied += [each.origin.events.opened() for each in truncations if each.origin.events]
        self._output.write(chain.from_iterable(emptied), position)
        self.wrote(position)

    def _delete(self, truncation: Truncation, position: Position) -> None:
        table = truncation.table
        if table.records.has_key:
            keys = self._output.live_keys(table.path, position.tables.get(table.path))
            origin = replace(truncation.origin, events=None)  # rows have no place in it: only their table
            delete_rows(self._output, table.records, keys, position, origin, truncation.lsn)

    def _emptied(self, position: Position, path: str) -> Position:
        """Remember where a table was emptied: the next time, only what comes after it is read."""
        known = position.tables.get(path)
        if known is None or path not in self._output.capture.tables:
            return position
        return position.with_table(path, replace(known, emptied=self._output.ends(path)))
