"""Figures of a flow that are made of what its runner published."""

from collections.abc import Iterable

from penstock.ops.model import GroupStatus
from penstock.pipeline.bottleneck import PARTS, Part
from penstock.pipeline.flow_status import FlowStatus, Sample
from penstock.pipeline.latency import quantile

_RECENT = 60.0  # seconds over which a rate is taken
SILENT = "silent"


def state(flow: FlowStatus, now: float) -> str:
    """Return its state; `silent` if its process is gone without a word."""
    return SILENT if flow.is_silent(now) else flow.state


def is_at_work(flow: FlowStatus, now: float) -> bool:
    """Whether it is at work, and its process says so."""
    return state(flow, now) in ("starting", "running", "waiting")


def rate(flow: FlowStatus) -> float:
    """Return how many rows it read in a second over the last minute, or since it has samples.

    >>> samples = tuple(Sample(at, 1, rows=300, seconds=1, behind=0) for at in (100, 130, 160, 190))
    >>> rate(FlowStatus("shop.bill", "running", at=190, started=0, process="", samples=samples))
    10.0
    """
    if len(flow.samples) < 2:
        return flow.rows / max(1.0, flow.at - flow.started)
    old = [each for each in flow.samples if each.at <= flow.at - _RECENT] or [flow.samples[0]]
    rows = sum(each.rows for each in flow.samples if each.at > old[-1].at)
    return rows / max(1.0, flow.at - old[-1].at)


def percentile(flow: FlowStatus, share: float) -> float | None:
    """Return the seconds within which a share of its last events had results; None if that is not known."""
    found = flow.recent if flow.recent.counts else flow.latency  # releases before this one publish no other
    return quantile(found.counts, found.count, share) if found.counts else None


def last(flow: FlowStatus) -> Sample | None:
    """Return its last batch."""
    return flow.samples[-1] if flow.samples else None


def behind(flow: FlowStatus, groups: Iterable[GroupStatus], now: float) -> int | None:
    """Return how many records wait for it: when its last batch began while it runs, now if it does not.

    None where that is not known. A shadow has no positions of its own: those of the group are its flow's.
    """
    found = last(flow)
    if found is not None and state(flow, now) == "running":
        return found.behind
    own = next((each for each in groups if each.group == flow.identity.group), None)
    return None if own is None or not own.lags or flow.shadow else own.events


def watermark_delay(flow: FlowStatus) -> float | None:
    """Return how many seconds its watermark trails the clock; None without a watermark."""
    found = last(flow)
    return None if found is None or found.watermark is None else max(0.0, flow.at - found.watermark)


def phases(flow: FlowStatus) -> dict[Part, float]:
    """Return the seconds of each part of the last batch; in real time, they are not known apart."""
    found = last(flow)
    if found is None or not (found.state_ms or found.sink_ms or found.overhead_ms):
        return {}
    took = {"state": found.state_ms, "sink": found.sink_ms, "overhead": found.overhead_ms}
    known = {name: each / 1000 for name, each in took.items()}
    known["source"] = max(0.0, found.seconds - sum(known.values()))
    return {name: known[name] for name in PARTS}
