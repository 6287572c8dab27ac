"""A broker that was killed is declared dead by its controller before it starts again.

Kafka 4.3 takes a partition without a leader for a deleted one when it writes a transaction's markers, and
leaves them out: a committed transaction then stays undecided for ever. A killed node passes through that
state if it just starts again: it goes on with its transactions as the leader that it was, until its own
controller notices that the killed broker's session has ended and takes all its partitions from it. So the
controller starts alone first and does that while no broker has transactions to go on with. See
docs/reliability.md.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from penstock.errors import ServiceError
from penstock.local import process
from penstock.local.files import last_lines

SESSION = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "250"}
_FENCED = "because its session has timed out"
_METADATA = "__cluster_metadata-0"
_PATIENCE = 20.0


def is_due(data: Path) -> bool:
    """Say whether the broker whose logs are in `data` has run before and was not stopped, but killed."""
    return (data / _METADATA).exists() and not (data / ".kafka_cleanshutdown").exists()


def declare_dead(command: Sequence[str], identity: Sequence[str], data: Path, log: Path) -> None:
    """Run the controller alone until it has fenced its broker; `command` makes it say so in `log`."""
    if left_over := process.find(identity):  # by an `up` that was killed itself
        process.stop(left_over, signal.SIGTERM, _PATIENCE)
    log.unlink(missing_ok=True)
    controller = psutil.Popen(command, cwd=log.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if _has(lambda: any(_FENCED in line for line in last_lines(log, 1000)), controller, log):
            # It is said before it is written; the controller writes something at least every half second.
            _await_growth(controller, data, log)
            _await_growth(controller, data, log)
    finally:
        with suppress(psutil.NoSuchProcess):
            process.stop(controller, signal.SIGTERM, _PATIENCE)


def _has(happened: Callable[[], bool], controller: psutil.Process, log: Path) -> bool:
    """Wait for something that the controller does; False if it doesn't, as one that has nothing to fence."""
    deadline = time.monotonic() + _PATIENCE
    while not happened():
        if process.ended(controller):
            shown = "\n  ".join(last_lines(log, 12)) or "(nothing)"
            raise ServiceError(f"Kafka's controller ended while starting; its last lines:\n  {shown}")
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _await_growth(controller: psutil.Process, data: Path, log: Path) -> None:
    before = _metadata_size(data)
    _has(lambda: _metadata_size(data) > before, controller, log)


def _metadata_size(data: Path) -> int:
    return sum(file.stat().st_size for file in (data / _METADATA).glob("*.log"))
