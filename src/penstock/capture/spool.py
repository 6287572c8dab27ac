"""Large transactions on disk: PostgreSQL sends their changes before it says whether they count."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO

_SHAPES = b"RY"  # tables and types are described once for a transaction, be it in a part that was undone
_HEAD = Struct(">IqI")  # the part of the transaction, the place in the log, the size


class Spool:
    """The changes of transactions that are not committed yet, a file for each.

    A part that was rolled back (a savepoint) is left out when the transaction is read.
    """

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)  # what a killed one has left
        folder.mkdir(parents=True)
        self._folder = Path(tempfile.mkdtemp(prefix="spool-", dir=folder))
        self._files: dict[int, BinaryIO] = {}
        self._undone: dict[int, set[int]] = {}

    def add(self, xid: int, part: int, lsn: int, data: bytes) -> None:
        """Keep a change of a transaction's part."""
        if xid not in self._files:
            self._files[xid] = self._path(xid).open("w+b")
        self._files[xid].write(_HEAD.pack(part, lsn, len(data)) + data)

    def undo(self, xid: int, part: int) -> None:
        """Leave a part out, or the whole transaction."""
        if part == xid:
            self.forget(xid)
        else:
            self._undone.setdefault(xid, set()).add(part)

    def read(self, xid: int) -> Iterator[tuple[int, bytes]]:
        """Yield the changes that count, as (place, message), in their order."""
        file, undone = self._files.get(xid), self._undone.get(xid, set())
        if file is None:
            return
        file.seek(0)
        while head := file.read(_HEAD.size):
            part, lsn, size = _HEAD.unpack(head)
            data = file.read(size)
            if part not in undone or data[0] in _SHAPES:
                yield lsn, data

    def forget(self, xid: int) -> None:
        """Let go of a transaction."""
        self._undone.pop(xid, None)
        if (file := self._files.pop(xid, None)) is not None:
            file.close()
            self._path(xid).unlink()

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, xid: int) -> Path:
        return self._folder / str(xid)
