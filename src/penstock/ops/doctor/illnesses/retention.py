"""Retention: events that are deleted before they are read, or about to be."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.model import GroupStatus, PartitionLag, System

ID = "lag.retention"
_SOON = 0.2  # the share of the retention that is left


def retention(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find positions before which events were deleted, or whose next event has little retention left."""
    kept = {each.name: each.retention_seconds for each in system.topics}
    for group in system.groups:
        lags = [each for each in group.lags if each.events and each.left is not None]
        worst = min(lags, key=lambda each: each.left or 0.0, default=None)
        whole = kept.get(worst.topic) if worst is not None else None
        if any(each.lost for each in group.lags):
            yield _lost(group)
        elif worst is not None and whole is not None and (worst.left or 0.0) < _SOON * whole:
            yield _soon(group, worst, whole)


def _lost(group: GroupStatus) -> Finding:
    lags = [each for each in group.lags if each.lost]
    lost = sum(each.lost for each in lags)
    return Finding(
        ID,
        "error" if group.members else "warning",
        group.group,
        f"{lost:,} events of {lags[0].topic} were deleted before it had read them",
        {"lost": lost, "partitions": len(lags), "position": lags[0].position, "members": len(group.members)},
        "it was behind by more than the time for which the topic keeps events",
        "bring them back from an archive or the source; raise retention= of the topic; delete the group "
        "if nobody needs it",
    )


def _soon(group: GroupStatus, worst: PartitionLag, whole: float) -> Finding:
    left = worst.left or 0.0
    return Finding(
        ID,
        "error",
        group.group,
        f"the oldest event that it has not read in {worst.topic}[{worst.partition}] may be deleted "
        f"{'in ' + spelled(left) if left > 0 else 'at any moment'}",
        {
            "left_seconds": round(left, 1),
            "retention_seconds": whole,
            "events": worst.events,
            "position": worst.position,
        },
        "it is behind by nearly all of the time for which the topic keeps events",
        f"raise retention= of {worst.topic}, or archive it (`penstock archive add`)",
    )
