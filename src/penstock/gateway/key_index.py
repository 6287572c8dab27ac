"""The keys that were used, with their answers: on disk as far as memory does not hold them."""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

_TABLE = """
CREATE TABLE keys (key BLOB PRIMARY KEY, body BLOB, answer BLOB, at INTEGER) WITHOUT ROWID;
CREATE INDEX by_time ON keys (at);
"""
_CACHE_KB = 4096


class Used(NamedTuple):
    """A key that was used, at a time in milliseconds; an empty body is that of a request known by its id."""

    key: bytes
    body: bytes
    answer: bytes
    at: int


class KeyIndex:
    """Finds used keys; its file has no name and goes with the process: the log has them all.

    >>> index = KeyIndex()
    >>> index.add([Used(b"k", b"b", b"answer", 1_000)])
    >>> index.find(b"k").answer, index.find(b"other")
    (b'answer', None)
    >>> index.forget(before=2_000)
    >>> index.find(b"k")
    """

    def __init__(self) -> None:
        # An empty name is a file that SQLite makes when its cache is full, and that nobody else sees.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.executescript(_TABLE)

    def add(self, used: Iterable[Used]) -> None:
        """Remember keys; one that is there keeps its first answer."""
        self._database.execute("BEGIN")
        self._database.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?, ?, ?)", used)
        self._database.execute("COMMIT")

    def find(self, key: bytes) -> Used | None:
        """Return what a key was used for."""
        found = self._database.execute("SELECT key, body, answer, at FROM keys WHERE key = ?", [key])
        row = found.fetchone()
        return None if row is None else Used(*row)

    def forget(self, before: int) -> None:
        """Forget keys that were used before a time."""
        self._database.execute("DELETE FROM keys WHERE at < ?", [before])

    def close(self) -> None:
        self._database.close()
