"""Stopped lag: events wait, and the group does not get on at all."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.model import GroupStatus, System

ID = "lag.stopped"


def stopped_lag(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find groups that commit no more, or the same position again and again, while events wait."""
    own = {each.identity.group for each in system.flows}  # of a flow, other checks say why it stands still
    for group in system.groups:
        if group.judgement in ("stopped", "stalled") and group.events and group.group not in own:
            yield _finding(group)


def _finding(group: GroupStatus) -> Finding:
    stuck = [each for each in group.lags if each.judgement in ("stopped", "stalled")]
    places = ", ".join(f"{each.topic}[{each.partition}]@{each.position}" for each in stuck[:3])
    working = bool(group.members)
    return Finding(
        ID,
        "warning",
        group.group,
        f"{group.events:,} events wait, and it does not move on from {places}",
        {
            "events": group.events,
            "seconds": round(group.seconds, 1),
            "partitions_stuck": len(stuck),
            "members": len(group.members),
        },
        "its members are there but finish no event"
        if working
        else "nobody reads: it has no members, and commits nothing",
        "look into the log of its members: an event may take for ever or fail again and again"
        if working
        else "start its members, or delete the group if nobody needs it",
    )
