"""The rows that are there at the start: read in parallel under the snapshot that the slot has exported."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue

import psycopg

from penstock.capture.chunks import Chunk, Key, chunks
from penstock.capture.replication import connect
from penstock.capture.tables import Connection, TableShape, listed
from penstock.errors import SourceError
from penstock.log.transactional_writer import Message
from penstock.settings import Secret

MakeRecords = Callable[[Chunk, Connection], Iterator[Message]]
_REWRITTEN = """
select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace
left join pg_partition_tree(c.oid) t on true join pg_class p on p.oid = coalesce(t.relid, c.oid)
where n.nspname = %s and c.relname = %s and p.relkind = 'r'
  and p.relfilenode is distinct from pg_relation_filenode(p.oid)
"""
_AGAIN = "it is tried again"
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True)
class WrittenChunk:
    """The records of a chunk, in the order of the key."""

    path: str
    messages: Iterator[Message]
    rows: int
    last: Key | None
    is_final: bool


class SnapshotReader:
    """Connections that all see the database as the slot's snapshot has it."""

    def __init__(self, dsn: Secret, name: str, snapshot: str, readers: int) -> None:
        self._free: SimpleQueue[Connection] = SimpleQueue()
        self._readers = readers
        with ExitStack() as opened:
            found = [opened.enter_context(_opened(dsn, name, snapshot)) for _ in range(readers + 1)]
            self._stack = opened.pop_all()
        self._planner, *others = found
        for each in others:
            self._free.put(each)

    def lock(self, paths: list[str]) -> None:
        """Keep tables from being written anew: to an older snapshot they would be empty."""
        self._planner.execute(f"LOCK TABLE {listed(paths)} IN ACCESS SHARE MODE")
        for path in paths:
            schema, _, name = path.partition(".")
            if self._planner.execute(_REWRITTEN, [schema, name]).fetchone():
                raise SourceError(
                    f"table {path!r} was written anew while it was about to be read", hint=_AGAIN
                )

    def read(
        self, shape: TableShape, size: int, after: Key | None, make: MakeRecords
    ) -> Iterator[WrittenChunk]:
        """Yield a table's chunks in order; some more are read meanwhile. One without a key is one chunk."""
        if not shape.key:
            yield WrittenChunk(shape.path, make(Chunk(shape), self._planner), -1, None, True)
            return
        planned = chunks(self._planner, shape, size, after)
        with ThreadPoolExecutor(self._readers, "snapshot") as pool:
            waiting = deque(
                pool.submit(self._made, each, make) for each in islice(planned, self._readers + 1)
            )
            try:
                while waiting:
                    yield waiting.popleft().result()
                    waiting.extend(pool.submit(self._made, each, make) for each in islice(planned, 1))
            finally:
                _cancel(waiting)

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._stack.close()

    def _made(self, chunk: Chunk, make: MakeRecords) -> WrittenChunk:
        connection = self._free.get()
        try:
            messages = list(make(chunk, connection))
        finally:
            self._free.put(connection)
        return WrittenChunk(chunk.shape.path, iter(messages), len(messages), chunk.last, chunk.is_final)


def _opened(dsn: Secret, name: str, snapshot: str) -> Connection:
    connection = connect(dsn, name)
    connection.execute(_BEGIN)
    connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
    return connection


def _cancel(waiting: "deque[Future[WrittenChunk]]") -> None:
    for each in waiting:
        each.cancel()
