"""A broker that was killed is declared dead by its controller before it starts again.

Kafka 4.3 takes a partition without a leader for a deleted one when it writes a transaction's markers, and
leaves them out: a committed transaction then stays undecided for ever. A killed node passes through that
state if it just starts again: it goes on with its transactions as the leader that it was, until its own
controller notices that the killed broker's session has ended and takes all its partitions from it. So the
controller starts alone first and does that while no broker has transactions to go on with. See
docs/reliability.md. Of several nodes that were all killed, all controllers start alone.
"""

import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from penstock.errors import ServiceError
from penstock.local import process
from penstock.local.files import last_lines

SESSION = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "250"}
_FENCED = re.compile(r"broker (\d+) .*because its session has timed out")
_METADATA = "__cluster_metadata-0"
_PATIENCE = 20.0


@dataclass(frozen=True)
class Controller:
    """How a node's controller is started alone; the command makes it say in `log` whom it fences."""

    command: Sequence[str]
    identity: Sequence[str]
    data: Path
    log: Path

    def start(self) -> psutil.Process:
        """Start it; one that is left over from an `up` that was killed itself is ended before."""
        if left_over := process.find(self.identity):
            process.stop(left_over, signal.SIGTERM, _PATIENCE)
        self.log.unlink(missing_ok=True)
        nowhere = subprocess.DEVNULL
        return psutil.Popen(self.command, cwd=self.log.parent, stdout=nowhere, stderr=nowhere)

    def fenced(self) -> set[str]:
        """Return the brokers that it has fenced."""
        found = (_FENCED.search(line) for line in last_lines(self.log, 1000))
        return {each[1] for each in found if each}


def is_due(data: Path) -> bool:
    """Say whether the broker whose logs are in `data` has run before and was not stopped, but killed."""
    return (data / _METADATA).exists() and not (data / ".kafka_cleanshutdown").exists()


def declare_dead(*controllers: Controller) -> None:
    """Run the controllers alone until they have fenced their brokers, each of which was killed."""
    started: list[psutil.Process] = []
    try:
        started += [each.start() for each in controllers]
        pairs = list(zip(started, controllers, strict=True))
        wanted = len(controllers)
        if _has(lambda: len(set().union(*(each.fenced() for each in controllers))) >= wanted, pairs):
            # It is said before it is written; the controller writes something at least every half second.
            for _ in range(2):
                _await_growth(pairs)
    finally:
        for each in started:
            with suppress(psutil.NoSuchProcess):
                process.stop(each, signal.SIGTERM, _PATIENCE)


Pairs = Sequence[tuple[psutil.Process, Controller]]


def _has(happened: Callable[[], bool], running: Pairs) -> bool:
    """Wait for something that controllers do; False if they don't, as those that have nothing to fence."""
    deadline = time.monotonic() + _PATIENCE
    while not happened():
        for each, controller in running:
            if process.ended(each):
                shown = "\n  ".join(last_lines(controller.log, 12)) or "(nothing)"
                raise ServiceError(f"Kafka's controller ended while starting; its last lines:\n  {shown}")
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _await_growth(running: Pairs) -> None:
    before = [_metadata_size(controller.data) for _, controller in running]
    _has(
        lambda: all(
            _metadata_size(each.data) > size for size, (_, each) in zip(before, running, strict=True)
        ),
        running,
    )


def _metadata_size(data: Path) -> int:
    return sum(file.stat().st_size for file in (data / _METADATA).glob("*.log"))
