"""Following a binary log: its changes, tables that are read meanwhile, and those that are emptied."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.capture.batch_writer import BatchWriter
from penstock.capture.capture import Capture
from penstock.capture.deletions import swept
from penstock.capture.mysql.catalogue import is_hidden
from penstock.capture.mysql.charsets import Charsets
from penstock.capture.mysql.chunks import Chunk, is_ordered
from penstock.capture.mysql.dump import Dump
from penstock.capture.mysql.packed import unpacker
from penstock.capture.mysql.place import offset, start_of
from penstock.capture.mysql.snapshot import Snapshot
from penstock.capture.mysql.source import Source
from penstock.capture.mysql.source_block import BinlogOrigin
from penstock.capture.mysql.stream import Answers, MappedTable, Stream
from penstock.capture.mysql.table_map import table_map
from penstock.capture.output import Output
from penstock.capture.pgoutput import Change, Values
from penstock.capture.position import Position, TableProgress, fresh
from penstock.capture.stream import CapturedTable
from penstock.capture.tables import Column, TableShape
from penstock.capture.types import Type
from penstock.capture.wishes import Wishes
from penstock.durations import duration
from penstock.errors import CaptureError, ChangesLostError
from penstock.log.transactional_writer import Message
from penstock.settings import Secret

_TICK, _AT_ONCE = 0.2, 0.001
_TURN = 2.0  # seconds: how long chunks are read before the stream has its turn


@dataclass(frozen=True)
class Beginning:
    """Where a session begins; the snapshot of just this place, and the tables that are read first, if any."""

    position: Position
    snapshot: Snapshot | None = None
    initial: frozenset[str] = frozenset()


class Following:
    """Writes what the log brings, until it is stopped.

    A table is read in chunks while the stream goes on. Each is seen in a snapshot that the server says the
    place of, and is written when the stream stands at just this place: no change is out of its turn.
    """

    def __init__(
        self,
        source: Source,
        output: Output,
        beginning: Beginning,
        wishes: Wishes,
        dsn: Secret,
        folder: Path,
    ) -> None:
        self._source, self._output, self._wishes, self._dsn = source, output, wishes, dsn
        position, self._snapshot, self._initial = beginning.position, beginning.snapshot, beginning.initial
        answers = Answers(self._described, self._emptied_table, self._read_again, self._born, self._altered)
        lowers_names = source.server.one("select @@lower_case_table_names") != "0"
        self._stream = Stream(
            position, self._capture.paths, answers, folder, output.transactions(), lowers_names
        )
        self._charsets = Charsets(source.server)
        self._tables: dict[str, CapturedTable] = {}
        self._heartbeat = duration(output.capture.heartbeat).total_seconds()
        self._writer = BatchWriter(output, self._stream)
        self._beat_at = time.monotonic()

    @property
    def _capture(self) -> Capture:
        return self._output.capture

    def run(self) -> None:
        """Read and write until stopped; what has come whole is written before the end."""
        position = self._stream.position
        if position.binlog is None:
            raise CaptureError("the position is not one of a binary log")
        with Dump(self._dsn, self._source.replica) as dump:
            dump.start(*start_of(position.binlog.file, offset(position.lsn)))
            try:
                self._read_tables()
                while not self._wishes.stopped.is_set():
                    dump.wait(_AT_ONCE if self._stream.position.pending else _TICK)
                    self._read(dump)
                    self._keep_alive()
                    self._writer.look_at_topics()
                    self._read_tables()
            finally:
                self._close_snapshot()

    def _read(self, dump: Dump) -> None:
        stream = self._stream
        for event in dump.read():
            if stream.feed(event):
                for _ in stream.changes():
                    self._writer.write_if_due()
                self._writer.write_if_due()
            if stream.position.pending:
                self._read_tables()
        if stream.batch.messages:
            self._writer.write()

    def _keep_alive(self) -> None:
        """An idle capture moves on, too: the server purges its log without regard to it."""
        now = time.monotonic()
        self._writer.moved_on(self._heartbeat)
        if now - self._beat_at >= self._heartbeat:
            self._source.server.ask("select 1")  # the lock lasts as long as this connection
            self._beat_at = now

    def _born(self, born: int) -> None:
        self._source.refuse_born(self._stream.position, born)

    def _described(self, body: bytes) -> MappedTable:
        """Say how the rows of a table are read, and its records made."""
        mapped = table_map(body)
        special = self._source.catalogue.special(mapped.path)
        shape = self._source.catalogue.shape_of(mapped, special)
        self._writer.follow_key(shape)
        table = self._tables[shape.path] = self._captured(shape)
        unpack = tuple(
            unpacker(each, self._charsets.of(each.collation, each.name), special.get(each.name, ""))
            for each in mapped.columns
        )
        hidden = frozenset(place for place, each in enumerate(mapped.columns) if is_hidden(each.name))
        return MappedTable(table, unpack, hidden)

    def _captured(self, shape: TableShape) -> CapturedTable:
        return CapturedTable(shape.path, self._output.records(shape), lambda values, _: values)

    def _read_again(self, paths: list[str]) -> None:
        """Tables may have other rows without a change of any: all are written again, and others deleted.

        The statement counts as written only together with this wish, or a kill between them would lose it.
        """
        stream = self._stream
        position = stream.checkpoint()
        self._output.write(stream.batch.messages, replace(position, index=position.index - 1))
        for path in paths:
            known = self._rereadable(path, position)
            if known is not None:
                position = position.with_table(path, fresh(known, self._output.ends(path)))
        self._output.write([], position)
        self._writer.wrote(position)

    def _rereadable(self, path: str, position: Position) -> TableProgress | None:
        known = position.tables.get(path)
        if known is None or path not in self._capture.tables:
            return None
        if not known.key:
            raise ChangesLostError(
                f"table {path!r} was renamed or got other rows at once, and has no key",
                hint=f"`penstock capture run {self._capture.name} --snapshot-again` writes all rows again",
            )
        return known

    def _altered(self, path: str) -> None:
        """A table may have got a foreign key that changes rows by itself."""
        self._source.catalogue.refuse_cascades(path)

    def _emptied_table(self, path: str) -> CapturedTable | None:
        """Return a table that was emptied; of one that is gone by now, its key is known."""
        if path not in self._capture.tables:
            return None
        if path not in self._tables:
            try:
                shape = self._source.catalogue.shape(path)
            except CaptureError:
                shape = _remembered(path, self._stream.position.tables[path].key)
            self._tables[path] = self._captured(shape)
        return self._tables[path]

    def _read_tables(self) -> None:
        """Read chunks of tables, if any are wanted and the stream is where they are seen."""
        if self._stream.position.requests and not self._stream.position.pending:
            self._writer.next_request()
        turn_ends = time.monotonic() + _TURN
        while (path := self._next_table(time.monotonic() < turn_ends)) and self._is_in_view():
            self._read_chunk(path)
            self._wishes.raise_if_stopped()
        if not self._stream.position.pending:
            self._close_snapshot()

    def _next_table(self, has_time: bool) -> str | None:
        """Return what is to be read next; first tables without a key, whose changes wait for it."""
        tables = self._stream.position.tables
        pending = self._stream.position.pending
        keyless = [path for path in pending if not tables[path].key or path not in self._capture.tables]
        return next(iter(keyless or (pending if has_time else [])), None)

    def _is_in_view(self) -> bool:
        """Whether the snapshot shows the database as it is where the stream stands; make one if none is."""
        if self._snapshot is None:
            self._snapshot = Snapshot(self._dsn)
        elif self._snapshot.place < self._stream.position.lsn:  # the server logs before others see
            self._snapshot.renew()
        return self._snapshot.place == self._stream.position.lsn

    def _close_snapshot(self) -> None:
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None

    def _read_chunk(self, path: str) -> None:
        if self._stream.batch.messages or self._stream.batch.changes:
            self._writer.write()
        now, position = time.time_ns(), self._stream.checkpoint()
        flag = "true" if path in self._initial else "incremental"
        origin = BinlogOrigin(now // 1000, None, snapshot=flag, now=now)
        progress, shape = position.tables[path], self._source.catalogue.shape(path)
        if progress.read:
            self._writer.wrote(swept(self._output, self._output.records(shape), path, position, origin))
            return
        if self._snapshot is None:
            return
        size = self._source.catalogue.facts(path).chunk(self._wishes.chunk)
        chunk = Chunk(shape, size, progress.after, progress.last)
        rows = chunk.read(self._snapshot.server)
        made = self._made(shape, rows, origin, position.lsn)
        messages = iter(list(made)) if is_ordered(shape) else made
        self._write_chunk(chunk, messages, position)

    def _write_chunk(self, chunk: Chunk, messages: Iterator[Message], position: Position) -> None:
        """Write a chunk with its progress; a table without a key is counted while it is written."""
        path = chunk.shape.path
        progress = replace(position.tables[path], key=chunk.shape.key_spelling)
        rows = chunk.rows if is_ordered(chunk.shape) else progress.about
        done = progress.with_chunk(chunk.end, rows, final=chunk.is_final)
        position = position.with_table(path, done)
        self._output.write(messages, position)
        self._writer.wrote(position)

    def _made(
        self, shape: TableShape, rows: Iterator[Values], origin: BinlogOrigin, lsn: int
    ) -> Iterator[Message]:
        records = self._output.records(shape)
        for row in rows:
            yield from records.of(Change("r", 0, None, row, False), origin, lsn)


def _remembered(path: str, key: tuple[str, ...]) -> TableShape:
    """Return what the position knows of a table that is gone: the names and types of its key."""
    columns = [each.rpartition(" ") for each in key]
    made = tuple(Column(name, Type(type)) for name, _, type in columns)
    database, _, name = path.partition(".")
    return TableShape(database, name, made, tuple(each.name for each in made))
