"""Replicas and archives behind: copies of the log that do not follow it."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.model import System

ID = "copies.behind"
_OLD = 300.0  # seconds


def copies(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find replicas that are minutes behind, and replicas, archives and captures that ended with an error."""
    for replica in system.replicas:
        if replica.error or (replica.lag and replica.seconds > _OLD):
            yield _behind("replica", replica.replica, replica.lag, replica.seconds, replica.error)
    for archive in system.archives:
        if archive.error:
            yield _behind("archive", archive.topic, archive.behind, archive.seconds or 0.0, archive.error)
    for capture in system.captures:
        if capture.error and capture.slot != "lost":
            yield _behind("capture", capture.capture, 0, capture.seconds or 0.0, capture.error)


def _behind(kind: str, name: str, lag: int, seconds: float, error: str) -> Finding:
    return Finding(
        ID,
        "error" if error else "warning",
        f"{kind} {name}",
        error or f"it is {lag:,} records behind, since {spelled(seconds)}",
        {"kind": kind, "behind": lag, "seconds": round(seconds, 1)},
        "it has ended with an error" if error else "it is not running, or slower than what it copies",
        f"see `penstock {kind} status`, then run it again",
    )
