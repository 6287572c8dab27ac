"""CPU time of processes: seconds of all cores, whatever else the machine does meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil


def cpu_seconds(pid: int | None = None) -> float:
    """What a process and those that it has started have used, the dead ones that it waited for included."""
    own = psutil.Process(pid)
    total = 0.0
    for each in (own, *own.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


class Used:
    """CPU seconds that a block has used."""

    seconds = 0.0


@contextmanager
def measured(pid: int | None = None) -> Iterator[Used]:
    """Measure what a process uses while the block runs: this one, or another."""
    used, before = Used(), cpu_seconds(pid)
    try:
        yield used
    finally:
        used.seconds = cpu_seconds(pid) - before
