"""Following a slot's stream: its changes, chunks that are read meanwhile, and tables that are emptied."""

import time
from collections.abc import Callable
from dataclasses import replace

from penstock.capture.batch_writer import BatchWriter
from penstock.capture.capture import Capture
from penstock.capture.deletions import swept
from penstock.capture.incremental import HIGH, LOW, IncrementalReader, Wanted
from penstock.capture.output import Output
from penstock.capture.pgoutput import Change, Relation
from penstock.capture.position import Position
from penstock.capture.records import Origin
from penstock.capture.replication import Replication
from penstock.capture.requests import REQUEST, received
from penstock.capture.slot import Source
from penstock.capture.spool import Spool
from penstock.capture.stream import CapturedTable, Stream
from penstock.capture.unchanged import Completion
from penstock.capture.windows import CommittedTransactions, ReadChunk, Window
from penstock.capture.wishes import Wishes
from penstock.durations import duration
from penstock.errors import CaptureError, SourceError

_TICK, _MOST_REQUESTS = 0.2, 100
_PATIENCE, _PAUSE = 10.0, 0.002  # seconds
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
        self._stream = Stream(
            position, self._described, output.message, self._own, spool, output.transactions()
        )
        self._make_reader = make_reader
        self._reader: IncrementalReader | None = None
        self._heartbeat = duration(output.capture.heartbeat).total_seconds()
        self._writer = BatchWriter(
            output, self._stream, lambda written: replication.confirm(written.lsn), self._await_seen
        )
        self._beat_at = time.monotonic()

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
                self._writer.look_at_topics()
                self._read_chunks()
        finally:
            if self._reader is not None:
                self._reader.close()

    def _read(self) -> None:
        stream, feed = self._stream, self._stream.feed
        for lsn, data in self._replication.read():
            if data[:1] == b"c":
                for _ in stream.committed_block(data):
                    self._writer.write_if_due()
            else:
                feed(lsn, data)
            self._writer.write_if_due()
        if not stream.in_transaction and stream.batch.messages:
            self._writer.write()

    def _await_seen(self) -> None:
        """Wait until others see what is to be written: PostgreSQL writes a commit to its log before."""
        deadline = time.monotonic() + _PATIENCE
        while not self._stream.unseen.all_in(self._source.snapshot()):
            if time.monotonic() > deadline:
                raise SourceError(
                    f"a committed transaction can't be seen for {_PATIENCE:.0f} s",
                    hint="does it wait for a standby? it is tried again",
                )
            time.sleep(_PAUSE)
        self._stream.unseen = CommittedTransactions()

    def _keep_alive(self) -> None:
        """An idle capture moves on, too: PostgreSQL would keep its log for it for ever."""
        now = time.monotonic()
        if self._stream.in_transaction:
            return
        if self._writer.moved_on(self._heartbeat):
            return
        if now - max(self._writer.wrote_at, self._beat_at) >= self._heartbeat:
            self._source.heartbeat()
            self._beat_at = now
            self._replication.confirm(self._writer.written.lsn)

    def _described(self, relation: Relation) -> CapturedTable | None:
        """Say how the records of a table are made; one that is published but not captured has none."""
        path = f"{relation.schema}.{relation.table}"
        if path not in self._capture.paths:
            self._refuse_renamed(relation, path)
            return None
        shape = self._source.catalogue.shape_of(relation)
        self._writer.follow_key(shape)
        return CapturedTable(path, self._output.records(shape), Completion(self._source.connection, shape))

    def _refuse_renamed(self, relation: Relation, path: str) -> None:
        tables = self._stream.position.tables
        before = next((name for name, each in tables.items() if each.oid == relation.id), None)
        if before is not None:
            raise CaptureError(
                f"table {before!r} is now called {path!r}",
                hint=f"name it back, or `penstock capture add {self._capture.name} --update --tables …`",
            )

    def _read_chunks(self) -> None:
        """Have the next chunk of a table read, if one is wanted."""
        if self._stream.in_transaction:
            return
        if self._stream.position.requests and not self._stream.position.pending:
            self._writer.next_request()
        position, pending = self._stream.position, self._stream.position.pending
        if not pending:
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
            self._writer.write()
        records = self._output.records(self._source.catalogue.shape(path))
        now = time.time_ns()
        origin = Origin(now // 1000, None, snapshot="incremental", now=now)
        self._writer.wrote(swept(self._output, records, path, self._stream.checkpoint(), origin))

    def _own(self, content: str, due: bool) -> None:
        """A message of our own in the database's log, to this capture or another: bounds, or a request."""
        kind, slot, rest = (*content.split(" ", 2), "", "")[:3]
        if slot != self._source.slot_name:
            return
        id, _, path = rest.partition(" ")
        if kind == REQUEST and due and (request := received(rest)) is not None:
            waiting = self._stream.position.requests
            if request not in waiting:  # none of them has begun: an equal one does for both
                waiting = (*waiting, request)[-_MOST_REQUESTS:]
            self._stream.position = replace(self._stream.position, requests=waiting)
        elif kind in (LOW, HIGH) and self._reader is not None and id == self._reader.expected:
            self._bound(self._reader, kind, id, path)

    def _bound(self, reader: IncrementalReader, kind: str, id: str, path: str) -> None:
        if kind == LOW:
            self._stream.windows.open(id, path)
            reader.passed(id)
            return
        window, chunk = self._stream.windows.close(id), reader.take(id)
        if window is None or chunk is None or window.is_void:
            return
        if self._stream.position.tables.get(chunk.path) == chunk.progress:
            self._add(chunk, window)

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
        for row in chunk.absent:
            key = records.key_of(row)
            if key is not None and key not in window.keys:
                stream.batch.messages += records.deletion(key, origin, stream.position.lsn)
        progress = stream.position.tables[chunk.path].with_chunk(chunk.last, made, final=chunk.is_final)
        stream.position = stream.position.with_table(chunk.path, progress)
