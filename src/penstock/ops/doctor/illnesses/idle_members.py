"""Idle members: a group with more members than there are partitions."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.model import System

ID = "group.idle-members"


def idle_members(system: System, probes: Probes) -> Iterator[Finding]:
    """Find stable groups some members of which have no partition, at both looks if there were two."""
    idle_before = _idle(probes.earlier) if probes.earlier is not None else None
    for group in system.groups:
        if group.kind != "consumer" or group.state not in ("stable", "assigning", "reconciling"):
            continue
        idle = [each for each in group.members if not each.partitions]
        if idle_before is not None:
            idle = [each for each in idle if (group.group, each.id) in idle_before]
        busy = len(group.members) - len(idle)
        held = sum(len(each.partitions) for each in group.members)
        if idle and busy and held <= len(group.members):
            yield Finding(
                ID,
                "warning",
                group.group,
                f"{len(idle)} of its {len(group.members)} members read nothing: there are {held} partitions",
                {"members": len(group.members), "idle": len(idle), "partitions": held},
                "a partition is read by one member at a time",
                f"run {held} members, or give the topic more partitions; a Queue has no such limit",
            )


def _idle(system: System) -> set[tuple[str, str]]:
    return {
        (group.group, each.id) for group in system.groups for each in group.members if not each.partitions
    }
