"""The ledger of a lake sink: a file for each entry; the table's log has the number of the one that counts.

A commit carries the sink's id and a number (Delta's application transaction, which outlives the log's
cleaning), and the entry is in the file of that number, written before. Of two commits with the sink's id that
began from the same version of the table, the second fails: who commits a newer epoch shuts older ones out.
"""

import hashlib
import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import LedgerError
from penstock.log.ledger import Entry

if TYPE_CHECKING:
    from deltalake import DeltaTable

FOLDER = "_penstock"  # hidden to readers, and to the table's vacuum, by its first letter
_RANDOM = 31  # bits of a number below those of its epoch


@dataclass(frozen=True)
class Note:
    """What is in a file of the ledger."""

    sink: str
    entry: Entry


@dataclass(frozen=True)
class Ledger:
    """The entries of one sink, in a folder of the table."""

    root: Path
    sink: str

    @property
    def folder(self) -> Path:
        return self.root / FOLDER / hashlib.sha256(self.sink.encode()).hexdigest()[:16]

    def read(self, delta: "DeltaTable", *, anew: bool = False) -> tuple[int | None, Entry]:
        """Return the number and the entry that count in a snapshot; of one to be forgotten, its epoch."""
        number = delta.transaction_version(self.sink)
        if number is None:
            return None, Entry()
        if anew:
            return number, Entry(epoch_of(number))
        try:
            return number, msgspec.json.decode(self.file(number).read_bytes(), type=Note).entry
        except FileNotFoundError:
            raise LedgerError(
                f"sink {self.sink!r} has written entry {number:x}, and {self.file(number)} is missing",
                hint="bring the file back, or let the flow begin anew with `penstock run … --begin-anew`",
            ) from None

    def write(self, entry: Entry) -> int:
        """Write an entry down, which counts once a commit has its number; return the number."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.encode(Note(self.sink, entry))
        while True:
            number = entry.epoch << _RANDOM | secrets.randbits(_RANDOM)
            with suppress(FileExistsError):
                write_durably(self.file(number), text)
                return number

    def remove(self, number: int | None) -> None:
        """Remove an entry that counts no more, or never will."""
        if number is not None:
            self.file(number).unlink(missing_ok=True)

    def staging(self, number: int) -> Path:
        """Return the folder in which files of an attempt wait for its commit."""
        return self.folder / f"{number:016x}"

    def sweep(self, number: int, last: int | None, files: set[str]) -> None:
        """Remove what earlier epochs have left behind, but no file that is in the table.

        `last` is the number that counted before, whose files are the table's, also if another commit has
        replaced them since. Files of other attempts were linked into the table's folder and not committed.
        """
        for path in self.folder.iterdir():
            left = int(path.stem, 16)
            if epoch_of(left) >= epoch_of(number):
                continue
            if not path.is_dir():
                path.unlink(missing_ok=True)
                continue
            for staged in path.rglob("*.parquet"):
                name = str(staged.relative_to(path))
                if left != last and name not in files:
                    (self.root / name).unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)

    def file(self, number: int) -> Path:
        return self.folder / f"{number:016x}.json"


def epoch_of(number: int) -> int:
    """Return the epoch in which a number was made.

    >>> epoch_of(5 << 31 | 77)
    5
    """
    return number >> _RANDOM


def write_durably(path: Path, text: bytes) -> None:
    """Write a new file and have it on the disk."""
    with path.open("xb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    flush_folder(path.parent)


def link(path: Path, name: Path) -> None:
    """Give a file a second name, and a new date: an old one that is in no commit is taken for left behind."""
    os.utime(path)
    name.parent.mkdir(parents=True, exist_ok=True)
    os.link(path, name)


def flush_folder(folder: Path) -> None:
    """Have the names of a folder on the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
