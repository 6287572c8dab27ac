"""Late events: those that come after the watermark has passed their time."""

from collections.abc import Iterator
from dataclasses import replace

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import round_delay
from penstock.ops.doctor.trend import median, quantile
from penstock.ops.model import System
from penstock.pipeline.flow_status import FlowStatus

ID = "time.late"
_ENOUGH = 100  # events to judge by
_SHARE = 0.001  # of events that may be late: the watermark advisor recommends as much
AHEAD = 60.0  # seconds that a watermark may be ahead of the clock


def late_events(system: System, probes: Probes) -> Iterator[Finding]:
    """Find flows that drop late events, or whose topics are in more disorder than they wait for."""
    for flow in system.flows:
        if is_ahead(flow):  # all events are late then, and no delay would help
            continue
        disorder = [
            each
            for topic in flow.reads
            if topic in probes.samples
            for each in probes.samples[topic].disorder()
        ]
        late, delay = sum(each.late for each in flow.samples), delay_of(flow)
        beyond = delay is not None and len(disorder) >= _ENOUGH and quantile(disorder, 1 - _SHARE) > delay
        if late or beyond:
            found = _finding(flow, late, delay, disorder)
            yield found if beyond or _is_much(flow, late) else replace(found, severity="info")


def delay_of(flow: FlowStatus) -> float | None:
    """Return how far its watermark is behind its newest event, if it has one."""
    found = [each.newest - each.watermark for each in flow.samples if each.newest and each.watermark]
    return median(found) if found and min(found) >= 0 else None


def is_ahead(flow: FlowStatus) -> bool:
    """Whether its watermark is ahead of the clock, as an event from the future makes it."""
    last = flow.samples[-1] if flow.samples else None
    return last is not None and last.watermark is not None and last.watermark > last.at + AHEAD


def _is_much(flow: FlowStatus, late: int) -> bool:
    return late > _SHARE * sum(each.rows for each in flow.samples)


def _finding(flow: FlowStatus, late: int, delay: float | None, disorder: list[float]) -> Finding:
    rows = sum(each.rows for each in flow.samples)
    wanted = quantile(disorder, 1 - _SHARE)
    suggested = round_delay(wanted * 1.2) if wanted > (delay or 0.0) else ""
    return Finding(
        ID,
        "warning",
        flow.label,
        f"{late:,} of {rows:,} events came after the watermark and were dropped"
        if late
        else f"its topics are in disorder by up to {wanted:.1f} s, and it waits for {delay or 0.0:.1f} s",
        {
            "late": late,
            "rows": rows,
            "sampled": len(disorder),
            "disorder_seconds_999": round(wanted, 1),
            "disorder_seconds_most": round(max(disorder, default=0.0), 1),
            **({"delay_seconds": round(delay, 1)} if delay is not None else {}),
            **({"suggested_delay": suggested} if suggested else {}),
        },
        "events reach the log later than others that happened after them, by more than the watermark's delay",
        (f'wait longer: watermark="{suggested}"; or ' if suggested else "wait longer, or ")
        + "take late events in: late=Late.refire(within=…).then(topic)",
    )
