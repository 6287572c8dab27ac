"""The process of a background command: it runs the command line, and writes down how that ended.

`python -m penstock.control.command_process FOLDER`; it is small, and lives as long as the command does.
"""

import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

from penstock.control.audit import write_down
from penstock.control.command_folder import FORMER, GRACE, LOG, OUTPUT, CommandFolder
from penstock.errors import PenstockError

_LOOK = 0.5  # seconds between looks
_PATIENCE = 600.0  # seconds for which the end is tried to be written down: a full disk may be seen to
_LARGEST = 4 * 1024 * 1024  # bytes of a log: a pipeline may run for months


class _Watch:
    """Waits for a child, asks it to end when that is wanted or it is time, and kills it if it does not."""

    def __init__(self, folder: CommandFolder, seconds: float | None) -> None:
        self._folder, self.is_stopped = folder, False
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._kill_at: float | None = None

    def until_end(self, child: "subprocess.Popen[bytes]", log: Path) -> int:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return child.wait(_LOOK)
            bound(log)
            self._end(child, time.monotonic())

    def _end(self, child: "subprocess.Popen[bytes]", now: float) -> None:
        is_late = self._deadline is not None and now > self._deadline
        if self._kill_at is None and (is_late or self._folder.is_to_stop):
            self.is_stopped = True
            child.terminate()
            self._kill_at = now + GRACE
        if self._kill_at is not None and now > self._kill_at:
            child.kill()


def bound(log: Path, largest: int = _LARGEST) -> None:
    """Keep a log within bounds: one that is too long becomes the former one, if there is room for that."""
    with suppress(OSError):  # whatever the disk does, the command is watched
        if log.stat().st_size <= largest:
            return
        with suppress(OSError):
            shutil.copyfile(log, log.with_name(FORMER))
        with log.open("r+b") as opened:
            opened.truncate(0)  # its writer appends, wherever the end is


def main(path: Path) -> None:
    """Run the command of a folder until it has ended."""
    folder = CommandFolder(path)
    command, user = folder.command, folder.user
    watch = _Watch(folder, command.seconds)
    with (path / LOG).open("ab") as log, (path / OUTPUT).open("wb") as output:
        child = _started(command.words, output if command.prints_document else log, log)
        with suppress(OSError):
            folder.note_child(psutil.Process(child.pid))
        code = watch.until_end(child, path / LOG)
    _note_end(folder, code, stopped=watch.is_stopped)
    ended = folder.run()
    outcome = f"{ended.state}: {ended.error}" if ended.error else ended.state
    with suppress(PenstockError):  # it has ended all the same
        write_down(path.parents[1], command.name, command.subject, f"ended, {outcome}", user)


def _note_end(folder: CommandFolder, code: int, *, stopped: bool) -> None:
    """Write down how it ended, again while that can't be done: a swap that is done must not look failed."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return folder.note_end(code, stopped=stopped)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def _started(words: tuple[str, ...], output: IO[bytes], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=log,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
