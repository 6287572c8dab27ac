"""Growing lag: events come faster than a flow or a group gets through them."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.lag_cause import flow_cause, group_cause
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.trend import median, rises
from penstock.ops.model import GroupStatus, System
from penstock.pipeline.flow_status import FlowStatus, Sample

ID = "lag.growing"
_LEAST, _SPAN = 4, 20.0  # samples, and the seconds that they span
_SLOW, _SLOWER = 10.0, 2.0  # seconds of a batch, and how much slower batches have become


def growing_lag(system: System, probes: Probes) -> Iterator[Finding]:
    """Find flows whose lag rises over their last batches, and groups whose lag rises over their commits."""
    for flow in system.flows:
        if flow.state == "running" and _grows(flow):
            yield _of_flow(flow, system, probes)
    own = {each.identity.group for each in system.flows}
    for group in system.groups:
        if group.judgement == "warning" and group.group not in own:
            yield _of_group(group, probes)


def _grows(flow: FlowStatus) -> bool:
    samples = flow.samples[-12:]
    if len(samples) < _LEAST or samples[-1].at - samples[0].at < _SPAN:
        return False
    waiting = rises([each.behind for each in samples]) and samples[-1].behind > samples[-1].rows
    paced = flow.mode == "realtime"  # its batches are as long as was declared
    return waiting or (not paced and _slows_down([each.seconds for each in samples]))


def _slows_down(seconds: list[float]) -> bool:
    """A flow takes in all that waits: where it can't keep up, each batch is longer than the one before."""
    half = len(seconds) // 2
    before, after = median(seconds[:half]), median(seconds[half:])
    return rises(seconds) and seconds[-1] > _SLOW and after > _SLOWER * before


def _of_flow(flow: FlowStatus, system: System, probes: Probes) -> Finding:
    samples = flow.samples[-12:]
    first, last = samples[0], samples[-1]
    why = flow_cause(flow, system, probes)
    span = last.at - first.at
    return Finding(
        ID,
        "warning",
        flow.label,
        _summary(first, last),
        {
            "behind_before": first.behind,
            "behind_now": last.behind,
            "batch_seconds_before": round(first.seconds, 2),
            "batch_seconds_now": round(last.seconds, 2),
            "seconds": round(span, 1),
            "rows_per_second": round(sum(each.rows for each in samples[1:]) / span, 1),
            **why.evidence,
        },
        why.cause,
        why.hint,
    )


def _summary(first: Sample, last: Sample) -> str:
    span = last.at - first.at
    if last.behind > first.behind:
        return (
            f"its lag grew from {first.behind:,} to {last.behind:,} events in {span:.0f} s, and a batch now "
            f"takes {last.seconds:.1f} s"
        )
    return f"its batches took {first.seconds:.1f} s, and {last.seconds:.1f} s only {span:.0f} s later"


def _of_group(group: GroupStatus, probes: Probes) -> Finding:
    growing = [each for each in group.lags if each.judgement == "warning"]
    why = group_cause(group, probes)
    return Finding(
        ID,
        "warning",
        group.group,
        f"it is {group.events:,} events behind, the oldest of {group.seconds:.0f} s, and falls further back",
        {
            "events": group.events,
            "seconds": round(group.seconds, 1),
            "partitions_growing": len(growing),
            "partitions": len(group.lags),
            "members": len(group.members),
            **why.evidence,
        },
        why.cause,
        why.hint,
    )
