"""The lock of an index's one writer: whoever comes later waits, and a killed process holds nothing."""

import fcntl
import os
import platform
import time
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

from penstock.errors import SinkError

_PAUSE = 0.02  # seconds


class WriterLock:
    """An open file that the system locks for as long as it is open; it says who holds it."""

    def __init__(self, path: Path, holder: str, wait: timedelta) -> None:
        self._file = path.open("a+b")
        try:
            _take(self._file, path, wait)
            self._file.truncate(0)
            self._file.write(f"{holder}, process {os.getpid()} on {platform.node()}".encode())
            self._file.flush()
        except BaseException:
            self._file.close()
            raise

    def release(self) -> None:
        self._file.close()


def _take(file: BinaryIO, path: Path, wait: timedelta) -> None:
    end = time.monotonic() + wait.total_seconds()
    while not _is_taken(file):
        if time.monotonic() > end:
            raise SinkError(
                f"the index at {path.parent} is being written by {_holder(path)}, "
                f"and was not free within {wait.total_seconds():g} s",
                hint="it is tried again; if the other one hangs, end it",
            )
        time.sleep(_PAUSE)


def _is_taken(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> str:
    return path.read_text(errors="replace") or "another process"
