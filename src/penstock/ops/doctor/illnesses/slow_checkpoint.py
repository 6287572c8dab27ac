"""Slow checkpoints: what a batch costs besides its work, and in which phase."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.trend import median
from penstock.ops.model import System
from penstock.pipeline.flow_status import FlowStatus

ID = "checkpoint.slow"
_LEAST, _LONG, _SHARE = 3, 2.0, 0.3  # samples, seconds, and the share of a batch
_PHASES = {
    "walCommit": ("writing the offset range down", "the checkpoint folder's storage"),
    "commitOffsets": ("finishing the batch in the checkpoint", "the checkpoint folder's storage"),
    "commitBatch": ("finishing the batch in the checkpoint", "the checkpoint folder's storage"),
    "queryPlanning": ("planning the query", "the size of its plan, and how many topics it reads"),
    "latestOffset": ("asking Kafka where its topics end", "how soon the broker answers"),
    "getBatch": ("preparing what is read", "how soon the broker answers"),
}


def slow_checkpoint(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find flows whose batches spend seconds, and much of their time, on their checkpoint or their state."""
    for flow in system.flows:
        if flow.state == "running" and len(flow.samples) >= _LEAST:
            yield from _found(flow)


def _found(flow: FlowStatus) -> Iterator[Finding]:
    samples = flow.samples[-12:]
    whole = median([each.seconds for each in samples])
    overhead = median([each.overhead_ms / 1000 for each in samples])
    state = median([each.state_ms / 1000 for each in samples])
    if overhead >= _LONG and overhead >= _SHARE * whole:
        yield _finding(flow, whole, overhead, *_slowest(flow))
    elif state >= _LONG and state >= _SHARE * whole:
        what = ("state", "writing state and its changes", "the size of its state, and its storage")
        yield _finding(flow, whole, state, *what)


def _slowest(flow: FlowStatus) -> tuple[str, str, str]:
    known = {name: flow.phases[name] for name in _PHASES if name in flow.phases}
    name = max(known, key=known.__getitem__, default="walCommit")
    return name, *_PHASES[name]


def _finding(flow: FlowStatus, whole: float, took: float, phase: str, doing: str, look_at: str) -> Finding:
    return Finding(
        ID,
        "warning",
        flow.label,
        f"{took:.1f} s of a batch's {whole:.1f} s are spent on {doing}",
        {
            "seconds": round(took, 2),
            "batch_seconds": round(whole, 2),
            "phase": phase,
            "phase_seconds": round(flow.phases.get(phase, took), 2),
            "interval": flow.interval,
        },
        f"the slowest phase is {phase}: {doing}",
        f"look at {look_at}; a longer checkpoint_interval= pays for it less often",
    )
