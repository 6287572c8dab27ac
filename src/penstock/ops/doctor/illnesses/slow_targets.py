"""Targets behind: a target that does not answer, or takes longer than all the rest of a batch."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.illnesses.poison import is_of_target, repeated_trouble
from penstock.ops.doctor.lag_cause import shares_of
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.trend import median
from penstock.ops.model import System
from penstock.pipeline.flow_status import FlowStatus

ID = "target.behind"
_SLOW, _SHARE = 5.0, 0.6  # seconds of a batch in the target, and their share


def slow_targets(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find flows that wait for their target again and again, or spend most of long batches in it."""
    for flow in system.flows:
        found = repeated_trouble(flow)
        sink = median([each.sink_ms / 1000 for each in flow.samples[-12:]])
        if found is not None and is_of_target(found[0]):
            yield _away(flow, *found)
        elif flow.state == "running" and sink > _SLOW and shares_of(flow)["sink"] > _SHARE:
            yield _slow(flow, sink)


def _away(flow: FlowStatus, text: str, times: int) -> Finding:
    return Finding(
        ID,
        "error",
        flow.label,
        f"it waits for {flow.target or 'its target'}: {text}",
        {"failures": times, "restarts": flow.restarts, "state": flow.state, "target": flow.target},
        "the target, or the broker, is down or can't be reached from where the flow runs",
        "start it; the flow tries again by itself, and nothing is lost meanwhile",
    )


def _slow(flow: FlowStatus, sink: float) -> Finding:
    last = flow.samples[-1]
    return Finding(
        ID,
        "warning",
        flow.label,
        f"{sink:.1f} s of a batch are spent in {flow.target or 'its target'}",
        {
            "sink_seconds": round(sink, 2),
            "share_sink": round(shares_of(flow)["sink"], 2),
            "rows": last.rows,
            "behind": last.behind,
            "target": flow.target,
        },
        "the target takes rows more slowly than the flow makes them",
        "look at locks and indices of the target; more lanes= write side by side",
    )
