"""Late events: those that come after the watermark has passed their time."""

from collections.abc import Iterator
from datetime import timedelta

from penstock.ops.doctor.finding import Finding, Severity
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.trend import median, quantile
from penstock.ops.lateness.ladder import rounded_up, spelled
from penstock.ops.model import System
from penstock.pipeline.flow_status import FlowStatus

ID = "time.late"
_ENOUGH = 100  # events to judge by
_SHARE = 0.001  # of events that may be late: the watermark advisor recommends as much
AHEAD = 60.0  # seconds that a watermark may be ahead of the clock
_POLICY = "late=Late.refire(within=…).then(topic)"


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
            yield _finding(flow, _severity(flow, late, beyond=beyond), late, delay, disorder)


def delay_of(flow: FlowStatus) -> float | None:
    """Return how far its watermark is behind its newest event, if it has one.

    That is the delay that it declares and the time that a batch spans: the watermark moves after a batch.
    """
    found = [each.newest - each.watermark for each in flow.samples if each.newest and each.watermark]
    return median(found) if found and min(found) >= 0 else None


def is_ahead(flow: FlowStatus) -> bool:
    """Whether its watermark is ahead of the clock, as an event from the future makes it."""
    last = flow.samples[-1] if flow.samples else None
    return last is not None and last.watermark is not None and last.watermark > last.at + AHEAD


def _severity(flow: FlowStatus, late: int, *, beyond: bool) -> Severity:
    """Disorder alone is no loss: windows with a late policy may take in what comes after the watermark."""
    is_much = late > _SHARE * sum(each.rows for each in flow.samples)
    return "warning" if is_much or (beyond and _has_dropped(flow, late)) else "info"


def _has_dropped(flow: FlowStatus, late: int) -> bool:
    return late > 0 or flow.late > 0


def _finding(
    flow: FlowStatus, severity: Severity, late: int, delay: float | None, disorder: list[float]
) -> Finding:
    rows = sum(each.rows for each in flow.samples)
    wanted = quantile(disorder, 1 - _SHARE)
    suggested = _suggested(wanted) if wanted > (delay or 0.0) else ""
    return Finding(
        ID,
        severity,
        flow.label,
        f"{late:,} of {rows:,} events came after the watermark and were dropped"
        if late
        else f"its topics are in disorder by up to {wanted:.1f} s, and its watermark trails its newest event "
        f"by {delay or 0.0:.1f} s",
        {
            "late": late,
            "rows": rows,
            "sampled": len(disorder),
            "disorder_seconds_999": round(wanted, 1),
            "disorder_seconds_most": round(max(disorder, default=0.0), 1),
            **({"trails_seconds": round(delay, 1)} if delay is not None else {}),
            **({"suggested_delay": suggested} if suggested else {}),
        },
        "events reach the log later than others that happened after them, by more than the watermark's delay",
        _hint(suggested, has_dropped=_has_dropped(flow, late)),
    )


def _suggested(wanted: float) -> str:
    """The delay that the watermark advisor would recommend by the same events."""
    return spelled(rounded_up(timedelta(seconds=wanted)))


def _hint(suggested: str, *, has_dropped: bool) -> str:
    longer = f'wait longer: watermark="{suggested}"' if suggested else "wait longer"
    if has_dropped:
        return f"{longer}; windows can take late events in instead: {_POLICY}"
    return f"Spark has dropped none so far: leave it, if its windows have {_POLICY}; or {longer}"
