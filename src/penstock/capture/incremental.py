"""Tables, or ranges of their keys, that are read again while the stream goes on."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.capture.absent_keys import absent_rows
from penstock.capture.chunks import Chunk, next_end
from penstock.capture.position import TableProgress
from penstock.capture.replication import connect
from penstock.capture.slot import Source
from penstock.capture.tables import Connection, listed
from penstock.capture.windows import CommittedTransactions, ReadChunk
from penstock.errors import PenstockError, SourceError
from penstock.events import new_id
from penstock.settings import Secret

LOW, HIGH = "low", "high"
_PAUSE, _PATIENCE = 0.02, 60.0
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True)
class Wanted:
    """A table, and how much of it is to be read."""

    path: str
    progress: TableProgress


class IncrementalReader:
    """Reads chunk after chunk in a thread of its own, each between two messages in the database's log.

    The stream's thread calls `passed` for each message that it meets, and `take` for the chunk behind the
    second one; the next chunk is begun when the one before is taken.
    """

    def __init__(
        self,
        dsn: Secret,
        name: str,
        make_source: Callable[[Connection], Source],
        committed: CommittedTransactions,
        size: int,
    ) -> None:
        self._dsn, self._name, self._make_source, self._size = dsn, name, make_source, size
        self._committed = committed
        self._wanted: Wanted | None = None
        self._read: ReadChunk | None = None
        self._change = threading.Condition()
        self._passed: set[str] = set()
        self.expected = ""  # the number of the chunk that is being read
        self._stopped = False
        self.error: PenstockError | None = None
        self._thread = threading.Thread(target=self._run, name="incremental", daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        return self._wanted is None

    def want(self, wanted: Wanted) -> None:
        """Read the next chunk of a table."""
        with self._change:
            self._wanted = wanted
            self._change.notify_all()

    def passed(self, id: str) -> None:
        """The stream has come to the first message of a chunk."""
        with self._change:
            self._passed.add(id)
            self._change.notify_all()

    def take(self, id: str) -> ReadChunk | None:
        """Return the chunk of this number, if it was read by this process."""
        with self._change:
            found = self._read if self._read is not None and self._read.id == id else None
            if found is not None:
                self._read = self._wanted = None
            return found

    def close(self) -> None:
        with self._change:
            self._stopped = True
            self._change.notify_all()
        self._thread.join(10)

    def _run(self) -> None:
        try:
            with connect(self._dsn, f"{self._name} incremental") as connection:
                while (wanted := self._next()) is not None:
                    self._chunk(self._make_source(connection), wanted)
        except Exception as error:  # whatever it is, somebody has to hear of it
            known = error if isinstance(error, PenstockError) else SourceError(f"can't read a chunk: {error}")
            self.error = known

    def _next(self) -> Wanted | None:
        with self._change:
            while not self._stopped and (self._wanted is None or self._read is not None):
                self._change.wait(0.5)
            return None if self._stopped else self._wanted

    def _chunk(self, source: Source, wanted: Wanted) -> None:
        id = self.expected = new_id()
        source.emit("penstock", f"{LOW} {source.slot_name} {id} {wanted.path}")
        if not self._await(id):
            return
        read = self._rows(source, wanted, id)
        with self._change:
            self._read = read
        source.emit("penstock", f"{HIGH} {source.slot_name} {id} {wanted.path}")

    def _rows(self, source: Source, wanted: Wanted, id: str) -> ReadChunk:
        connection, progress = source.connection, wanted.progress
        self._begin(connection, wanted)
        try:
            shape = source.catalogue.shape(wanted.path)
            size = source.catalogue.facts(wanted.path).chunk(self._size)
            end = next_end(connection, shape, size, progress.after, progress.last)
            chunk = Chunk(shape, progress.after, end or progress.last, end is None)
            rows = list(chunk.rows(connection))
            absent = absent_rows(connection, shape, progress.absent)
        finally:
            connection.execute("ROLLBACK")
        return ReadChunk(id, wanted.path, progress, shape, rows, absent, end, end is None)

    def _begin(self, connection: Connection, wanted: Wanted) -> None:
        """Begin with a snapshot that sees all that the stream has shown.

        The table is locked before: to an older snapshot, one that was written anew is empty.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            connection.execute(_BEGIN)
            connection.execute(f"LOCK TABLE {listed([wanted.path])} IN ACCESS SHARE MODE")
            row = connection.execute("select pg_current_snapshot()::text").fetchone()
            snapshot = str(row[0]) if row is not None else "0:0:"
            is_open = int(snapshot.partition(":")[0]) < wanted.progress.behind
            if not is_open and self._committed.all_in(snapshot):
                return
            connection.execute("ROLLBACK")
            deadline = time.monotonic() + _PATIENCE if is_open else deadline
            if self._stopped or time.monotonic() > deadline:
                raise SourceError(
                    "transactions are in PostgreSQL's log that no snapshot sees yet",
                    hint="do they wait for a standby? it is tried again",
                )
            time.sleep(_PAUSE)

    def _await(self, id: str) -> bool:
        with self._change:
            while id not in self._passed and not self._stopped:
                self._change.wait(0.5)
            self._passed.clear()
            return not self._stopped
