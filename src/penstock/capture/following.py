"""Following a slot's stream: its changes, chunks that are read meanwhile, and tables that are emptied."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain

from penstock.capture.capture import Capture
from penstock.capture.deletions import delete_rows, swept
from penstock.capture.incremental import HIGH, LOW, IncrementalReader, Wanted
from penstock.capture.output import Output
from penstock.capture.pgoutput import Change, Relation
from penstock.capture.position import Position, TableProgress
from penstock.capture.records import Origin
from penstock.capture.replication import Replication
from penstock.capture.requests import REQUEST, SnapshotRequest
from penstock.capture.slot import Source
from penstock.capture.spool import Spool
from penstock.capture.stream import Batch, CapturedTable, Stream, Truncation
from penstock.capture.unchanged import completed_row
from penstock.capture.windows import ReadChunk, Window
from penstock.capture.wishes import Wishes
from penstock.durations import duration

_MOST_MESSAGES, _MOST_BYTES = 20_000, 16 * 1024 * 1024
_TICK = 0.2
MakeReader = Callable[[Stream], IncrementalReader]


class Following:
    """Writes what the stream brings, until it is stopped."""

    def __init__(
        self,
        source: Source,
        output: Output,
        replication: Replication,
        position: Position,
        spool: Spool,
        make_reader: MakeReader,
    ) -> None:
        self._source, self._output, self._replication = source, output, replication
        self._stream = Stream(position, self._described, output.message, self._own, spool)
        self._make_reader = make_reader
        self._reader: IncrementalReader | None = None
        self._heartbeat = duration(output.capture.heartbeat).total_seconds()
        self._written = position
        self._wrote_at = self._beat_at = time.monotonic()

    @property
    def _capture(self) -> Capture:
        return self._output.capture

    def run(self, wishes: Wishes) -> None:
        """Read and write until stopped; what has come whole is written before the end."""
        start = self._stream.position.lsn
        self._replication.start(self._source.slot_name, self._source.publication, start)
        try:
            while not wishes.stopped.is_set():
                self._replication.wait(_TICK)
                self._read()
                self._keep_alive()
                self._read_chunks()
        finally:
            if self._reader is not None:
                self._reader.close()

    def _read(self) -> None:
        stream, feed = self._stream, self._stream.feed
        for lsn, data in self._replication.read():
            if data[:1] == b"c":
                for _ in stream.committed_block(data):
                    self._write_if_due()
            else:
                feed(lsn, data)
            self._write_if_due()
        if not stream.in_transaction and stream.batch.messages:
            self._write()

    def _write_if_due(self) -> None:
        batch = self._stream.batch
        if batch.truncations:
            self._truncate()
        elif len(batch.messages) >= _MOST_MESSAGES or batch.size >= _MOST_BYTES:
            self._write()

    def _write(self) -> None:
        position, batch = self._stream.checkpoint(), self._stream.batch
        self._output.write(batch.messages, position)
        self._wrote(position)

    def _wrote(self, position: Position) -> None:
        self._stream.position, self._stream.batch = position, Batch()
        self._written, self._wrote_at = position, time.monotonic()
        self._replication.confirm(position.lsn)

    def _keep_alive(self) -> None:
        """An idle capture moves on, too: PostgreSQL would keep its log for it for ever."""
        now, stream = time.monotonic(), self._stream
        if now - self._wrote_at < self._heartbeat or stream.in_transaction:
            return
        if stream.position.lsn > self._written.lsn:
            self._write()
        elif now - self._beat_at >= self._heartbeat:
            self._source.heartbeat()
            self._beat_at = now
            self._replication.confirm(self._written.lsn)

    def _described(self, relation: Relation) -> CapturedTable | None:
        """Say how the records of a table are made; one that is published but not captured has none."""
        path = f"{relation.schema}.{relation.table}"
        if path not in self._capture.paths:
            return None
        shape = self._source.catalogue.shape_of(relation)
        complete = partial(completed_row, self._source.connection, shape)
        return CapturedTable(path, self._output.records(shape), complete)

    def _truncate(self) -> None:
        """Delete the rows of a table that was emptied; all that was before it has to be written first."""
        stream = self._stream
        truncations, stream.batch.truncations = stream.batch.truncations, []
        position = stream.checkpoint()
        before = replace(position, index=position.index - 1)
        self._output.write(stream.batch.messages, before)
        stream.batch = Batch()
        for each in truncations:
            self._delete(each, before)
        emptied = [each.table.records.truncation(each.origin, each.lsn) for each in truncations]
        self._output.write(chain.from_iterable(emptied), position)
        self._wrote(position)

    def _delete(self, truncation: Truncation, position: Position) -> None:
        table = truncation.table
        if table.records.has_key:
            keys = self._output.live_keys(table.path)
            delete_rows(self._output, table.records, keys, position, truncation.origin, truncation.lsn)

    def _read_chunks(self) -> None:
        """Have the next chunk of a table read, if one is wanted."""
        position, pending = self._stream.position, self._stream.position.pending
        if not pending or self._stream.in_transaction:
            return
        if self._reader is None:
            self._reader = self._make_reader(self._stream)
        if self._reader.error is not None:
            raise self._reader.error
        path = pending[0]
        if position.tables[path].read:
            self._sweep(path)
        elif self._reader.is_idle:
            self._reader.want(Wanted(path, position.tables[path]))

    def _sweep(self, path: str) -> None:
        if self._stream.batch.messages:
            self._write()
        records = self._output.records(self._source.catalogue.shape(path))
        now = time.time_ns()
        origin = Origin(now // 1000, None, snapshot="incremental", now=now)
        self._wrote(swept(self._output, records, path, self._stream.checkpoint(), origin))

    def _own(self, content: str, due: bool) -> None:
        """A message of our own in the database's log, to this capture or another: bounds, or a request."""
        kind, slot, rest = (*content.split(" ", 2), "", "")[:3]
        if slot != self._source.slot_name:
            return
        if kind == REQUEST and due:
            self._request(SnapshotRequest.from_json(rest))
        elif kind in (LOW, HIGH) and self._reader is not None:
            self._bound(self._reader, kind, *rest.split(" ", 1))

    def _bound(self, reader: IncrementalReader, kind: str, id: str, path: str) -> None:
        if kind == LOW:
            self._stream.windows.open(id, path)
            reader.passed(id)
            return
        window, chunk = self._stream.windows.close(id), reader.take(id)
        if window is not None and chunk is not None and not window.is_void:
            self._add(chunk, window)

    def _request(self, request: SnapshotRequest) -> None:
        """A table, or a range of its keys, is to be read again."""
        if request.path in self._capture.tables:
            sweep = {} if request.is_range else self._output.ends(request.path)
            wanted = TableProgress(after=request.after, last=request.last, sweep=sweep)
            self._stream.position = self._stream.position.with_table(request.path, wanted)

    def _add(self, chunk: ReadChunk, window: Window) -> None:
        """Write a chunk's rows, but for those that were changed while it was read."""
        stream, now = self._stream, time.time_ns()
        origin = Origin(now // 1000, None, snapshot="incremental", now=now)
        records, made = self._output.records(chunk.shape), 0
        for row in chunk.rows:
            if records.key_of(row) not in window.keys:
                read = Change("r", 0, None, row, False)
                stream.batch.messages += records.of(read, origin, stream.position.lsn)
                made += 1
        progress = stream.position.tables[chunk.path].with_chunk(chunk.last, made, final=chunk.is_final)
        stream.position = stream.position.with_table(chunk.path, progress)
