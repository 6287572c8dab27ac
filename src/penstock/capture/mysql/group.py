"""The events of a transaction until its end: in memory, and on disk where they are many."""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from tempfile import SpooledTemporaryFile

from penstock.capture.mysql.events import Gtid

_HEAD = Struct("<QBI")  # the place, the kind, the size
_MOST = 8 * 1024 * 1024  # bytes in memory


class Group:
    """Collects a transaction's events: the log may undo some of them, or all, before its end."""

    def __init__(self, gtid: Gtid, place: int, at: int, folder: Path) -> None:
        self.gtid, self.place, self.at = gtid, place, at
        self._file = SpooledTemporaryFile(_MOST, dir=str(folder))  # noqa: SIM115
        self._marks: dict[str, int] = {}

    def add(self, place: int, kind: int, body: bytes) -> None:
        self._file.write(_HEAD.pack(place, kind, len(body)) + body)

    def mark(self, name: str) -> None:
        """Remember a savepoint."""
        self._marks[name] = self._file.tell()

    def undo(self, name: str) -> bool:
        """Leave out what came since a savepoint; say whether it is known."""
        if name not in self._marks:
            return False
        self._file.seek(self._marks[name])
        self._file.truncate()
        return True

    @property
    def is_empty(self) -> bool:
        return not self._file.tell()

    def read(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield what counts, as (place, kind, body), in its order."""
        self._file.seek(0)
        while head := self._file.read(_HEAD.size):
            place, kind, size = _HEAD.unpack(head)
            yield place, kind, self._file.read(size)

    def close(self) -> None:
        self._file.close()
