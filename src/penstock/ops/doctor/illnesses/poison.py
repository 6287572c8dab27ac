"""Poison records: one on which a flow or a group fails, each time that it is tried again."""

import re
from collections import Counter
from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.model import GroupStatus, PartitionLag, System
from penstock.pipeline.flow_status import FlowStatus

ID = "records.poison"
_TIMES = 2  # the same trouble
_NUMBER = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")  # of a batch, a task, an object
_TARGETS = (
    "can't be reached",
    "connection",
    "timed out",
    "Connection refused",
    "no answer",
    "is the broker up",
)


def poison(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find flows that fail again and again in the same way, and groups that stand before one record."""
    for flow in system.flows:
        found = repeated_trouble(flow)
        if found is not None and not is_of_target(found[0]):
            yield _of_flow(flow, *found)
    for group in system.groups:
        stuck = [each for each in group.lags if each.judgement == "stalled" and each.events]
        moving = [each for each in group.lags if each.judgement in ("ok", "warning")]
        if len(stuck) == 1 and moving:
            yield _of_group(group, stuck[0])


def repeated_trouble(flow: FlowStatus) -> tuple[str, int] | None:
    """Return the newest text of the trouble that a flow had several times, if it has not got on since.

    Troubles are the same if their texts differ in numbers only.
    """
    after = max((each.at for each in flow.samples), default=0.0)
    newest = {_kind(each.text): each.text for each in flow.troubles if each.at >= after}
    counts = Counter(_kind(each.text) for each in flow.troubles if each.at >= after)
    most = counts.most_common(1)
    return (newest[most[0][0]], most[0][1]) if most and most[0][1] >= _TIMES else None


def _kind(text: str) -> str:
    return _NUMBER.sub("#", text)


def is_of_target(text: str) -> bool:
    """Whether a trouble is that somebody else does not answer."""
    return any(word in text for word in _TARGETS)


def _of_flow(flow: FlowStatus, text: str, times: int) -> Finding:
    last = flow.samples[-1].batch if flow.samples else -1
    return Finding(
        ID,
        "error",
        flow.label,
        f"it fails on the same batch again and again: {text}",
        {"failures": times, "restarts": flow.restarts, "last_batch": last, "state": flow.state},
        "a record of the batch after the last one that was finished breaks its function or its target",
        "find it among the records after its position (`penstock topics tail`), let the function take it or "
        "send it to a side output; try_… functions of Spark's give null instead of an error",
    )


def _of_group(group: GroupStatus, stuck: PartitionLag) -> Finding:
    place = f"{stuck.topic}[{stuck.partition}]@{stuck.position}"
    return Finding(
        ID,
        "error",
        group.group,
        f"it does not get past {place}, while its other partitions move on",
        {
            "topic": stuck.topic,
            "partition": stuck.partition,
            "position": stuck.position,
            "events": stuck.events,
            "seconds": round(stuck.seconds, 1),
        },
        "the record there breaks its reader, or takes for ever",
        f"look at it: `penstock topics tail {stuck.topic}`; then let the reader take it, or move past it: "
        f"`penstock groups reset {group.group} {stuck.topic} --to {stuck.partition}={stuck.position + 1}`",
    )
