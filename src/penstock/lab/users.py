"""Who uses the platform of a folder: each lab holds a file together with the others."""

import fcntl
from pathlib import Path
from types import TracebackType
from typing import IO, Self


class Users:
    """The labs on one platform; the kernel lets go of the file however a lab ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def join(self) -> None:
        """Become one of them; waits while the last one stops the platform."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("a")
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def is_last(self) -> bool:
        """Whether there is nobody else; nobody comes then, either, until this one has left."""
        if self._file is None:
            return True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
