"""A detached process and the record of it, which is checked against the machine before it is believed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import psutil

from penstock.errors import ServiceError
from penstock.local.files import write_whole

# The kernel counts from boot, and the boot time is in whole seconds that move with the clock.
_CLOCK_SLACK = 2.0


@dataclass(frozen=True)
class Record:
    """Which process was started: `command` is the end of its command line, the part that names the data."""

    pid: int
    create_time: float
    command: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return what is written at `path`; garbage counts as nothing."""
        try:
            found = json.loads(path.read_text())
            return cls(int(found["pid"]), float(found["create_time"]), tuple(found["command"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @classmethod
    def of(cls, process: psutil.Process, command: Sequence[str]) -> Self:
        """Describe a process that runs now."""
        return cls(process.pid, process.create_time(), tuple(command))

    def write(self, path: Path) -> None:
        """Write the record so that a reader sees all of it or nothing."""
        write_whole(path, json.dumps(asdict(self)))

    def process(self) -> psutil.Process | None:
        """Return the process if it is still this one, not a zombie and not a reused number."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.create_time) < _CLOCK_SLACK
            return process if same and _runs(process, self.command) else None
        except (psutil.Error, ValueError):
            return None


def find(command: Sequence[str]) -> psutil.Process | None:
    """Return the process whose command line ends with `command`.

    An `up` that was killed just after starting a process has left no record of it.
    """
    for process in psutil.process_iter():
        try:
            if _runs(process, command):
                return process
        except psutil.Error:
            continue
    return None


def current(record: Path, command: Sequence[str]) -> psutil.Process | None:
    """Return the running process, by its record or by looking for it, and correct the record."""
    known = Record.read(record)
    if known and known.command == tuple(command) and (process := known.process()):
        return process
    if process := find(command):
        Record.of(process, command).write(record)
    return process


def start(arguments: Sequence[str], folder: Path, output: Path) -> int:
    """Start a process in a session of its own, its output appended to a file, and return its number."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("ab") as file:
        child = subprocess.Popen(
            arguments,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # It is meant to outlive this program: without this, Python warns that nobody waited for it.
    child.returncode = 0
    return child.pid


def stop(process: psutil.Process, polite: signal.Signals, patience: float) -> None:
    """Ask a process to end, wait, and end it."""
    for number, seconds in ((polite, patience), (signal.SIGKILL, 10.0)):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
        if _await(lambda: ended(process), seconds):
            _reap(process.pid)
            return
    raise ServiceError(f"process {process.pid} does not end, not even by SIGKILL")


def ended(process: psutil.Process) -> bool:
    """Say whether all of a process is gone; a zombie's other threads may still hold its files and ports."""
    try:
        if not process.is_running():
            return True
        return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
    except psutil.NoSuchProcess:
        return True


def let_go(record: Path, patience: float = 10) -> None:
    """Wait for a process that was killed a moment ago to let go of its files and ports."""
    known = Record.read(record)
    if known and not _await(lambda: not _is_dying(known), patience):
        raise ServiceError(f"process {known.pid} was killed, but has not ended", hint="try again")


def _is_dying(known: Record) -> bool:
    """A process that is being ended loses its command line first, then its files, then its number."""
    try:
        process = psutil.Process(known.pid)
        if abs(process.create_time() - known.create_time) >= _CLOCK_SLACK or process.cmdline():
            return False
    except psutil.ZombieProcess:
        pass
    except (psutil.Error, ValueError):
        return False
    return not ended(process)


def _await(happened: Callable[[], bool], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _reap(pid: int) -> None:
    """Take note of the end of a child of ours, which is a zombie until then."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _runs(process: psutil.Process, command: Sequence[str]) -> bool:
    if process.pid == os.getpid() or process.cmdline()[-len(command) :] != list(command):
        return False
    return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
