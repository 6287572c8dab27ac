"""Growing state: rows that come into state and never leave it."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import size, spelled
from penstock.ops.doctor.trend import rises
from penstock.ops.model import System
from penstock.pipeline.flow_status import FlowStatus, Sample

ID = "state.growing"
_LEAST, _SPAN = 6, 45.0  # samples, and the seconds that they span
_ROWS = 1_000
_WINDOWS = 1800.0  # seconds for which windows may fill up at first


def growing_state(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find flows whose state grows as fast in the end as in the beginning, with nothing that would end it."""
    for flow in system.flows:
        if flow.state == "running" and _grows(flow.samples):
            yield _finding(flow)


def _grows(samples: tuple[Sample, ...]) -> bool:
    rows = _rows(samples)
    if len(samples) < _LEAST or len(rows) < len(samples) or rows[-1] < _ROWS:
        return False
    span = samples[-1].at - samples[0].at
    if span < (_SPAN if samples[-1].watermark is None else _WINDOWS):
        return False
    half = len(rows) // 2
    early, recent = rows[half] - rows[0], rows[-1] - rows[half]
    return rises(rows, 3) and rows[-1] > 1.3 * rows[0] and recent > 0.5 * early


def _rows(samples: tuple[Sample, ...]) -> list[int]:
    """How many rows state had; fewer numbers than samples where Spark does not count them."""
    return [each.state_rows for each in samples if each.state_rows is not None]


def _finding(flow: FlowStatus) -> Finding:
    first, last, rows = flow.samples[0], flow.samples[-1], _rows(flow.samples)
    span = last.at - first.at
    rate = (rows[-1] - rows[0]) / span
    return Finding(
        ID,
        "warning",
        flow.label,
        f"its state grew from {rows[0]:,} to {rows[-1]:,} rows in {spelled(span)}, "
        f"to {size(last.state_bytes)}",
        {
            "rows_before": rows[0],
            "rows_now": rows[-1],
            "bytes": last.state_bytes,
            "rows_per_hour": round(rate * 3600),
            "seconds": round(span, 1),
            "watermark": "none" if last.watermark is None else "moves",
        },
        "nothing ends what it keeps: it has no watermark"
        if last.watermark is None
        else "what it keeps is kept longer than the watermark's delay, or for ever",
        "bound it: a watermark, within=, at_most= or a time to live; keys without an end need a table",
    )
