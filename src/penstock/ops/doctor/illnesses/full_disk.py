"""Disks that are nearly full: a broker, a database and checkpoints stop when there is no room."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import size
from penstock.ops.model import System

ID = "disk.full"
_MUCH, _TOO_MUCH = 0.85, 0.95
_ROOM = 20 * 2**30  # bytes: a large disk may be used to a larger share


def full_disk(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find folders of the platform whose file system is used by 85 % and has little room."""
    for disk in probes.disks:
        if disk.used >= _MUCH and disk.free < _ROOM:
            yield Finding(
                ID,
                "error" if disk.used >= _TOO_MUCH else "warning",
                disk.folder,
                f"its disk is {disk.used:.0%} full: {size(disk.free)} are left",
                {"used": round(disk.used, 3), "free_bytes": disk.free, "total_bytes": disk.total},
                "topics, checkpoints, the database's log or something else on the same disk",
                "shorten retention= or archive topics (`penstock archive add`), look for slots that retain "
                "the log (capture.slot), or move the folder",
            )
