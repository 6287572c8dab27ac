"""A stuck watermark: windows that never close, or that have all closed before their events came."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Evidence, Finding
from penstock.ops.doctor.illnesses.late_events import is_ahead
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.model import System
from penstock.pipeline.flow_status import FlowStatus, Sample

ID = "watermark.stuck"
_LEAST, _SPAN = 3, 45.0  # samples, and the seconds that they span
_QUIET = 120.0  # seconds without a batch


def stuck_watermark(system: System, probes: Probes) -> Iterator[Finding]:
    """Find flows whose watermark stands still while events come, or is ahead of the clock."""
    for flow in system.flows:
        if flow.state != "running" or not flow.samples or flow.samples[-1].watermark is None:
            continue
        last = flow.samples[-1]
        if is_ahead(flow):
            yield _future(flow, probes)
        elif _stands_still(flow.samples):
            yield _still(flow, probes)
        elif flow.at - last.at > _QUIET:
            yield _quiet(flow, flow.at - last.at)


def _ahead(flow: FlowStatus) -> float:
    """How far the watermark is ahead of the time at which its batch ended."""
    last = flow.samples[-1]
    return (last.watermark or 0.0) - last.at


def _stands_still(samples: tuple[Sample, ...]) -> bool:
    """Whether rows came all the while, and the watermark did not move."""
    same = [each for each in samples if each.watermark == samples[-1].watermark]
    span = same[-1].at - same[0].at
    return len(same) >= _LEAST and span >= _SPAN and sum(each.rows for each in same[1:]) > 0


def _future(flow: FlowStatus, probes: Probes) -> Finding:
    last, ahead = flow.samples[-1], _ahead(flow)
    found = [
        each for topic in flow.reads if topic in probes.samples for each in probes.samples[topic].ahead()
    ]
    place: Evidence = {"example": found[0].place} if found else {}
    return Finding(
        ID,
        "error",
        flow.label,
        f"its watermark is {spelled(ahead)} ahead of the clock: every event from now on is late",
        {"ahead_seconds": round(ahead, 1), "watermark": last.watermark or 0.0, "late": flow.late, **place},
        "an event is dated in the future, and has taken the watermark with it",
        'bound it: Watermark("…", future="1 minute"); events dated further ahead then move no watermark. '
        "A flow whose watermark has moved is begun anew (`penstock run --begin-anew`) or rebuilt",
    )


def _still(flow: FlowStatus, probes: Probes) -> Finding:
    same = [each for each in flow.samples if each.watermark == flow.samples[-1].watermark]
    quiet = _quiet_partitions(flow, probes)
    return Finding(
        ID,
        "warning",
        flow.label,
        f"its watermark has not moved for {spelled(same[-1].at - same[0].at)}, while "
        f"{sum(each.rows for each in same[1:]):,} events came: no window closes",
        {
            "seconds": round(same[-1].at - same[0].at, 1),
            "rows": sum(each.rows for each in same[1:]),
            "quiet_partitions": " ".join(quiet) or "none",
        },
        f"it waits for a writer that is quiet: {', '.join(quiet)}"
        if quiet
        else "events come, but none that is newer: they are all of one time, or older than the newest",
        'say how long a quiet one is waited for: Watermark("…", idle="30 seconds")',
    )


def _quiet(flow: FlowStatus, seconds: float) -> Finding:
    return Finding(
        ID,
        "info",
        flow.label,
        f"no event has come for {spelled(seconds)}: its last windows wait for a newer one",
        {"seconds": round(seconds, 1)},
        "the stream is idle, and without events event time does not move on",
        'nothing, if more will come; Watermark("…", idle="1 minute") closes windows of a stream that ends',
    )


def _quiet_partitions(flow: FlowStatus, probes: Probes) -> list[str]:
    """Partitions of what it reads whose last record is a minute older than that of others."""
    samples = [probes.samples[topic] for topic in flow.reads if topic in probes.samples]
    last = {
        f"{sample.topic}[{number}]": records[-1].at
        for sample in samples
        for number, records in sample.partitions.items()
    }
    newest = max(last.values(), default=0.0)
    return sorted(name for name, at in last.items() if newest - at > _SPAN)
