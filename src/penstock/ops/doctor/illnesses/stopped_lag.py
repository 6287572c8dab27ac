"""Stopped lag: events wait, and the group does not get on at all."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.model import GroupStatus, System
from penstock.pipeline.flow_status import FlowStatus

ID = "lag.stopped"
_ENDED = ("stopped", "done")
_STUCK = ("stopped", "stalled")  # what ten minutes of commits, or of none, are judged as
_REST = 86_400.0  # seconds between two runs of a flow that a schedule runs, at most


def stopped_lag(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find groups that commit no more, or the same position again and again, while events wait."""
    flows = _flows(system)
    for group in (each for each in system.groups if each.events):
        flow, is_stuck = flows.get(group.group), group.judgement in _STUCK
        if flow is None:
            if is_stuck:
                yield _of_group(group)
        elif (is_stuck and flow.state in _ENDED) or _waits_for_a_person(flow, group):
            yield _of_flow(flow, group, system.at)  # of others, their own checks say why they stand still


def _flows(system: System) -> dict[str, FlowStatus]:
    """The flow of each group; of several generations, the one that was heard of last."""
    own = (each for each in system.flows if not each.shadow)
    return {each.identity.group: each for each in sorted(own, key=lambda each: each.at)}


def _waits_for_a_person(flow: FlowStatus, group: GroupStatus) -> bool:
    """Whether it was stopped, for however short a time; what has no age are marks of transactions."""
    return flow.state == "stopped" and group.seconds > 0


def _of_flow(flow: FlowStatus, group: GroupStatus, now: float) -> Finding:
    is_resting = flow.state == "done" and group.seconds < _REST
    is_recent = group.judgement not in _STUCK
    return Finding(
        ID,
        "info" if is_resting or is_recent else "warning",
        flow.label,
        f"{group.events:,} events wait, the oldest for {spelled(group.seconds)}, and it is {flow.state}",
        {
            "events": group.events,
            "seconds": round(group.seconds, 1),
            "state": flow.state,
            "ended_seconds_ago": round(now - flow.at, 1),
        },
        "it was run once, and more came since" if flow.state == "done" else "somebody has stopped it",
        f"run it: `penstock run {flow.identity.pipeline}`; one that is gone for good: "
        f"`penstock forget {flow.identity.pipeline} {flow.identity.flow}`",
    )


def _of_group(group: GroupStatus) -> Finding:
    stuck = [each for each in group.lags if each.judgement in _STUCK]
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
