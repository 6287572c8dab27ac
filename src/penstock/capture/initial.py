"""The beginning of a capture: a slot, and the rows that are there in the snapshot of its first place."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from penstock.capture.chunks import Chunk
from penstock.capture.deletions import swept
from penstock.capture.lost import refuse_outbox
from penstock.capture.output import Output
from penstock.capture.pgoutput import Change
from penstock.capture.position import Position, TableProgress, fresh
from penstock.capture.records import Origin
from penstock.capture.replication import NewSlot, Replication
from penstock.capture.slot import Source
from penstock.capture.snapshot import MakeRecords, SnapshotReader
from penstock.capture.streamed_rows import StreamedRows
from penstock.capture.tables import Connection, TableShape
from penstock.capture.wishes import Wishes
from penstock.errors import CaptureError
from penstock.log.transactional_writer import Message
from penstock.settings import Secret


class Beginning:
    """Makes the slot and writes the snapshot; it can be stopped between chunks."""

    def __init__(
        self,
        source: Source,
        output: Output,
        dsn: Secret,
        name: str,
        wishes: Wishes,
        begun: Callable[[], None],
    ) -> None:
        self._source, self._output, self._dsn, self._wishes = source, output, dsn, wishes
        self._begun = begun
        self._name = f"{name} snapshot"

    def begin(self, replication: Replication, old: Position | None) -> Position:
        """Start from nothing, or again where changes were lost; return the position behind the rows."""
        source, capture = self._source, self._output.capture
        if old is None:
            self._output.refuse_records()
            self._refuse_foreign_slot()
        else:
            refuse_outbox(capture, old)
            self._output.forget_event_topics()
        source.drop_slot()
        made = replication.create(source.slot_name, failover=source.wants_failover)
        tables = {path: self._planned(path, old, made.begins) for path in capture.paths}
        topics = self._output.topic_ids()
        position = Position(replication.system, made.begins, tables=tables, topics=topics)
        self._output.write([], position)
        self._begun()
        return self._snapshot(made, position, position.pending)

    def _planned(self, path: str, old: Position | None, begins: int) -> TableProgress:
        """What is to be read of a table; of an outbox, the stream brings all that comes after `begins`."""
        capture, catalogue = self._output.capture, self._source.catalogue
        shape, is_table = catalogue.shape(path), path in capture.tables
        about = catalogue.facts(path).rows
        now = TableProgress(oid=shape.oid, key=shape.key_spelling, about=about)
        sweep = self._output.ends(path) if old is not None and is_table else {}
        done = capture.snapshot == "never" and old is None
        return replace(fresh(now, sweep), done=done, begins=0 if is_table else begins)

    def _refuse_foreign_slot(self) -> None:
        if self._output.capture.slot and self._source.slot() is not None:
            raise CaptureError(
                f"there is a slot {self._source.slot_name!r}, and this capture has not made it",
                hint="it may be of another reader: drop it if it is not, or choose another --slot",
            )

    def keyless(self, position: Position) -> Position:
        """Write tables whose rows can't be distinguished, and outboxes, under the snapshot of another slot.

        Their changes before that snapshot are in it already. An outbox of which some events may be written
        goes on: the stream brings what came since, whatever its key, and the rest of the rows is read.
        """
        for path in position.pending:
            shape, known = self._source.catalogue.shape(path), position.tables[path]
            is_table = path in self._output.capture.tables
            if shape.key and is_table:
                continue
            with Replication(self._dsn, self._name) as replication:
                made = replication.create(f"{self._source.slot_name[:50]}_again", temporary=True)
                begins, streamed = made.begins, None
                if not is_table and (known.begins or known.after):
                    begins = known.begins or position.lsn  # earlier positions have the latter only
                    streamed = StreamedRows(self._source, shape, begins, made.begins)
                position = position.with_table(path, replace(known, begins=begins))
                position = self._snapshot(made, position, [path], streamed)
        return position

    def _snapshot(
        self, made: NewSlot, position: Position, paths: list[str], streamed: StreamedRows | None = None
    ) -> Position:
        if not paths:
            return position
        reader = SnapshotReader(self._dsn, self._name, made.snapshot, self._wishes.readers)
        try:
            reader.lock(paths)
            for path in paths:
                position = self._table(reader, position, path, made.begins, streamed)
        finally:
            reader.close()
        return position

    def _table(
        self, reader: SnapshotReader, position: Position, path: str, lsn: int, streamed: StreamedRows | None
    ) -> Position:
        """Write a table's chunks, each in a transaction with its progress."""
        shape = self._source.catalogue.shape(path)
        now = time.time_ns()
        origin = Origin(now // 1000, None, snapshot="true", now=now)
        make = self._maker(shape, origin, lsn, streamed)
        size = self._source.catalogue.facts(path).chunk(self._wishes.chunk)
        for chunk in reader.read(shape, size, position.tables[path].after, make):
            self._wishes.raise_if_stopped()
            progress = position.tables[path]
            rows = progress.about if chunk.rows < 0 else chunk.rows
            position = position.with_table(path, progress.with_chunk(chunk.last, rows, final=chunk.is_final))
            self._output.write(chunk.messages, position)
        if not position.tables[path].done:
            position = swept(self._output, self._output.records(shape), path, position, origin)
        return position

    def _maker(
        self, shape: TableShape, origin: Origin, lsn: int, streamed: StreamedRows | None
    ) -> MakeRecords:
        records = self._output.records(shape)

        def make(chunk: Chunk, connection: Connection) -> Iterator[Message]:
            for row in chunk.rows(connection):
                if streamed is not None and streamed.take(row):
                    continue
                yield from records.of(Change("r", 0, None, row, False), origin, lsn)

        return make
