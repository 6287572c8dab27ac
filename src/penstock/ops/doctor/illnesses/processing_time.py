"""Processing time: a flow that goes by the clock of the machine although its events have a time."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.model import System

ID = "time.processing-time"


def processing_time(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find declared flows whose function asks what time it is, or goes by when records were written."""
    for flow in probes.declared:
        if flow.clocks:
            yield Finding(
                ID,
                "warning",
                flow.label,
                f"its function goes by the time at which it runs: {flow.clocks[0]}",
                {"places": len(flow.clocks), "first": flow.clocks[0]},
                "a replay, a restart or a backlog gives other results than the events themselves would",
                'use the event\'s own time, the field that time= of its topic names ("at" by default)',
            )
