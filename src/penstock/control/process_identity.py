"""Which process it is: numbers of processes are used again, and the clock may be set."""

from pathlib import Path

import psutil

from penstock.documents import JsonObject

_CLOCK_SLACK = 2.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START_TIME = 19  # its place in /proc/<pid>/stat behind the program's name


def identity(process: psutil.Process) -> JsonObject:
    """Describe a process that runs now, to be found again after the clock was set."""
    return {
        "pid": process.pid,
        "started": process.create_time(),
        "since_boot": _since_boot(process.pid),
        "boot": _boot(),
    }


def find(written: JsonObject) -> psutil.Process | None:
    """Return the process that was described, if it still runs."""
    try:
        process = psutil.Process(int(written["pid"]))
        return process if _is_same(process, written) else None
    except (psutil.NoSuchProcess, KeyError, ValueError, TypeError):
        return None


def _is_same(process: psutil.Process, written: JsonObject) -> bool:
    since_boot = _since_boot(process.pid)
    if since_boot is None or written.get("since_boot") is None:
        return abs(process.create_time() - float(written["started"])) < _CLOCK_SLACK
    return (since_boot, _boot()) == (written["since_boot"], written.get("boot"))


def _since_boot(pid: int) -> int | None:
    """When a process started, in ticks since the machine did; None where the system does not say."""
    try:
        _, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        return int(fields.split()[_START_TIME])
    except (OSError, ValueError, IndexError):
        return None


def _boot() -> str | None:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None


def is_over(process: psutil.Process) -> bool:
    """Whether a process is over, even if the one that started it has not noticed."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
