"""Following change streams: their changes, and collections that are read meanwhile."""

import time
from contextlib import ExitStack
from dataclasses import replace

from penstock.capture.deletions import swept
from penstock.capture.mongodb.change import INVALIDATE, DocumentChange, timestamp_of
from penstock.capture.mongodb.change_stream import ChangeStream
from penstock.capture.mongodb.chunk import Chunk
from penstock.capture.mongodb.client import JsonDocument
from penstock.capture.mongodb.document_records import DocumentRecords
from penstock.capture.mongodb.source import Source
from penstock.capture.output import Output
from penstock.capture.position import Position, TableProgress, fresh
from penstock.capture.records import Origin
from penstock.capture.wishes import Wishes
from penstock.durations import duration
from penstock.log.transactional_writer import Message

_MOST_EVENTS, _MOST_BYTES = 5_000, 16 * 1024 * 1024
_WAIT, _SHORTEST = 0.2, 0.02  # seconds: how long all streams together wait for changes, and one at least
_LOOK_AT_TOPICS = 15.0  # seconds


class Following:
    """Writes what the streams bring, until it is stopped.

    Collections are read in chunks while the streams go on. A chunk is never older than what the streams have
    brought; it may be newer, and then its changes come once more: the last record of a key is right as soon
    as the stream has passed the time of reading.
    """

    def __init__(
        self, source: Source, output: Output, position: Position, wishes: Wishes, initial: frozenset[str]
    ) -> None:
        self._source, self._output, self._wishes, self._initial = source, output, wishes, initial
        self._position = position
        self._streams: dict[str, ChangeStream] = {}
        self._records = {path: _records(output, path) for path in output.capture.tables}
        self._messages: list[Message] = []
        self._size = self._changes = 0
        self._heartbeat = duration(output.capture.heartbeat).total_seconds()
        self._wrote_at = self._looked_at = time.monotonic()

    def run(self) -> None:
        """Read and write until stopped; what has come is written before the end."""
        with ExitStack() as opened:
            self._open(opened)
            while not self._wishes.stopped.is_set():
                self._read_next_chunk()
                begun = time.monotonic()
                found = [self._read(path) for path in self._streams]
                if not any(found):
                    self._rest(begun)
                self._keep_alive()

    def _open(self, opened: ExitStack) -> None:
        paths = self._output.capture.tables
        wait = max(_WAIT / len(paths), _SHORTEST)
        for path in paths:
            stream = ChangeStream(self._source.client, path, self._position.streams[path], wait)
            opened.callback(stream.close)
            self._streams[path] = stream

    def _rest(self, begun: float) -> None:
        """A server that does not wait for changes by itself is not asked all the time."""
        if time.monotonic() - begun < _SHORTEST and not self._position.pending:
            self._wishes.stopped.wait(_SHORTEST)

    def _read(self, path: str) -> bool:
        """Read what a stream has, and write it; say whether there was anything."""
        stream, is_any = self._streams[path], False
        for event in stream.read(_MOST_EVENTS):
            is_any = True
            if event["operationType"] == INVALIDATE:
                self._begin_again(path, stream)
                continue
            self._add(path, event)
            self._position = _at(self._position, path, stream)
            if self._size >= _MOST_BYTES:
                self._write()
        self._position = _at(self._position, path, stream)
        if is_any:
            self._write()
        return is_any

    def _add(self, path: str, event: JsonDocument) -> None:
        change = DocumentChange.of(event)
        if change is None:
            return
        made = self._records[path].of_document(change)
        self._messages += made
        self._size += sum(len(value or b"") for _, _, value, _ in made)
        self._changes += 1
        seen = (change.time >> 32) * 1_000_000
        self._position = replace(self._position, seen=max(seen, self._position.seen))

    def _write(self) -> None:
        position = replace(self._position, changes=self._position.changes + self._changes)
        messages, self._messages, self._size, self._changes = self._messages, [], 0, 0
        self._write_all(messages, position)

    def _write_all(self, messages: list[Message], position: Position) -> None:
        self._position = replace(position, written=time.time())
        self._output.write(messages, self._position)
        self._wrote_at = time.monotonic()

    def _keep_alive(self) -> None:
        """An idle capture moves on, too: its token would fall out of MongoDB's log."""
        now = time.monotonic()
        if now - self._wrote_at >= self._heartbeat:
            self._write()
        if now - self._looked_at > _LOOK_AT_TOPICS:
            self._looked_at = now
            self._output.refuse_other_topics(self._position)

    def _begin_again(self, path: str, stream: ChangeStream) -> None:
        """A collection was dropped or renamed: what is there under its name now is read, the rest deleted."""
        self._write()  # what was before it belongs to the documents that are to be swept
        again = fresh(self._position.tables[path], self._output.ends(path))
        self._write_all([], _at(self._position, path, stream).with_table(path, again))

    def _read_next_chunk(self) -> None:
        if self._position.requests and not self._position.pending:
            self._take_request()
        if self._position.pending:
            self._read_chunk(self._position.pending[0])

    def _take_request(self) -> None:
        """Begin to read a collection again."""
        request, *others = self._position.requests
        self._position = replace(self._position, requests=tuple(others))
        known = self._position.tables.get(request.path)
        if known is not None:
            again = fresh(known, self._output.ends(request.path))
            self._position = self._position.with_table(request.path, again)

    def _read_chunk(self, path: str) -> None:
        progress, snapshot = self._position.tables[path], "true" if path in self._initial else "incremental"
        if progress.read:
            self._sweep(path, snapshot)
            return
        messages, chunk = self._chunk(path, progress, snapshot)
        done = progress.with_chunk(chunk.last, chunk.documents, final=chunk.is_final)
        self._write_all(messages, self._position.with_table(path, done))

    def _chunk(self, path: str, progress: TableProgress, snapshot: str) -> tuple[list[Message], Chunk]:
        """Read documents until there are enough of them, or of their bytes."""
        seen, made = self._position.streams[path].time, list[Message]()
        chunk, size = Chunk(self._wishes.chunk, progress.after), 0
        for each in chunk.read(self._source.client, path, timestamp_of(seen)):
            found = DocumentChange("r", each["_id"], each, seen)
            made += self._records[path].of_document(found, snapshot)
            size += len(made[-1][2] or b"")
            if size >= _MOST_BYTES:
                break
        return made, chunk

    def _sweep(self, path: str, snapshot: str) -> None:
        now = time.time_ns()
        origin = Origin(now // 1000, None, snapshot=snapshot, now=now)
        self._position = swept(self._output, self._records[path], path, self._position, origin)


def _records(output: Output, path: str) -> DocumentRecords:
    capture = output.capture
    return DocumentRecords(capture.topic(path), capture.prefix or capture.name, path)


def _at(position: Position, path: str, stream: ChangeStream) -> Position:
    """Return the position with a stream's place; the latest time of any is the position's own."""
    place = stream.place
    if position.streams.get(path) == place:
        return position
    streams = {**position.streams, path: place}
    return replace(position, streams=streams, lsn=max(position.lsn, place.time))


def planned(done: bool, about: int, sweep: dict[int, int]) -> TableProgress:
    """Return what is to be read of a collection."""
    return replace(fresh(TableProgress(key=("_id",), about=about), sweep), done=done)
