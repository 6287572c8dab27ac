"""Chunks that are read while the stream goes on: what changes meanwhile wins over what was read.

A message is written to the database's log before a chunk is read and another one after it. Between the two,
the stream's changes are newer than the rows, or the same. So rows whose key is changed there are left out,
and the others are written where the second message stands.
"""

from collections import deque
from dataclasses import dataclass, field

from penstock.capture.pgoutput import Values
from penstock.capture.position import TableProgress
from penstock.capture.tables import TableShape

_REMEMBERED = 100_000  # transactions
_ID = 2**32


@dataclass
class Window:
    """The keys of a table that were changed since a chunk's first message."""

    path: str
    keys: set[bytes | None] = field(default_factory=set)
    is_void: bool = False  # the table was emptied or has another shape: the chunk has to be read again


class Windows:
    """The windows that are open, by their chunk's number."""

    def __init__(self) -> None:
        self._open: dict[str, Window] = {}

    def open(self, id: str, path: str) -> None:
        self._open[id] = Window(path)

    def close(self, id: str) -> Window | None:
        return self._open.pop(id, None)

    def changed(self, path: str, key: bytes | None) -> None:
        """A row was changed, under this key."""
        for window in self._open.values():
            if window.path == path:
                window.keys.add(key)

    def voided(self, path: str) -> None:
        """A table was emptied, or has got another shape."""
        for window in self._open.values():
            window.is_void = window.is_void or window.path == path

    def __bool__(self) -> bool:
        return bool(self._open)


class CommittedTransactions:
    """The transactions that the stream has shown: a chunk may be read once a snapshot sees them all.

    PostgreSQL writes a commit to its log a moment before others see it, and longer before if it waits for a
    standby. A chunk that is read in between would bring an old row back.
    """

    def __init__(self) -> None:
        self._order: deque[int] = deque(maxlen=_REMEMBERED)
        self._known: set[int] = set()

    def add(self, xid: int) -> None:
        if len(self._order) == self._order.maxlen:
            self._known.discard(self._order[0])
        self._order.append(xid)
        self._known.add(xid)

    def all_in(self, snapshot: str) -> bool:
        """Whether a snapshot, as PostgreSQL spells it (xmin:xmax:running), sees all of them.

        >>> seen = CommittedTransactions()
        >>> seen.add(7)
        >>> seen.all_in("5:9:5,6"), seen.all_in("5:9:5,7"), seen.all_in("5:7:")
        (True, False, False)
        """
        _, ends, running = snapshot.split(":")
        if any(int(each) % _ID in self._known for each in running.split(",") if each):
            return False
        return not any((each - int(ends)) % _ID < _ID // 2 for each in list(self._known))


@dataclass(frozen=True)
class ReadChunk:
    """The rows of a chunk as they were read, and where the next one begins.

    It counts only if the table's progress is still the one that it was read for.
    """

    id: str
    path: str
    progress: TableProgress
    shape: TableShape
    rows: list[Values]
    absent: list[Values]  # keys that are to be deleted: the table does not have them
    last: tuple[str, ...] | None
    is_final: bool
