"""Flows that have failed, and flows whose process is gone without a word."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.model import System

FAILED, SILENT = "flow.failed", "flow.silent"


def failed_flows(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find flows that ended with an error."""
    for flow in system.flows:
        if flow.state == "failed":
            said = flow.troubles[-1].text if flow.troubles else "it did not say why"
            yield Finding(
                FAILED,
                "error",
                flow.label,
                f"it failed {spelled(system.at - flow.at)} ago: {said}",
                {"seconds_ago": round(system.at - flow.at, 1), "restarts": flow.restarts, "error": said},
                said,
                f"mend it, then run it again: `penstock run {flow.identity.pipeline}`",
            )


def silent_flows(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find flows that were at work, and of which nothing is heard."""
    for flow in system.flows:
        if flow.is_silent(system.at):
            yield Finding(
                SILENT,
                "error",
                flow.label,
                f"nothing was heard of it for {spelled(system.at - flow.at)}; it was {flow.state}",
                {"seconds": round(system.at - flow.at, 1), "process": flow.process, "state": flow.state},
                "its process was killed, its machine is down, or it does not reach the broker",
                f"look at {flow.process}, and run it again: `penstock run {flow.identity.pipeline}`",
            )
