"""Stalled flows: the process lives and events wait, but no batch ends."""

import re
from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.illnesses.poison import repeated_trouble
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.flow_figures import is_at_work
from penstock.ops.model import System
from penstock.pipeline.flow_status import FlowStatus

ID = "flow.stalled"
_PATIENCE = 120.0  # seconds without a batch; Spark takes some of them to start
_INTERVALS = 3  # of a flow whose batches are long by declaration
_MS = re.compile(r"(\d+) milliseconds")


def stalled_flows(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find flows that live, and whose groups have stood still for minutes while events wait."""
    groups = {each.group: each for each in system.groups}
    for flow in (each for each in system.flows if not each.shadow):  # a shadow has no group of its own
        group = groups.get(flow.identity.group)
        waits = group is not None and group.events and group.judgement in ("stopped", "stalled")
        is_explained = repeated_trouble(flow) is not None  # by records.poison or target.behind
        if group is not None and waits and _stands_still(flow, system.at) and not is_explained:
            yield _finding(flow, group.events, system.at)


def _stands_still(flow: FlowStatus, now: float) -> bool:
    return is_at_work(flow, now) and now - _last(flow) > max(_PATIENCE, _INTERVALS * _interval(flow))


def _last(flow: FlowStatus) -> float:
    """When its last batch ended, or else when it was started."""
    return max([flow.started, *(each.at for each in flow.samples)])


def _interval(flow: FlowStatus) -> float:
    found = _MS.fullmatch(flow.interval)
    return int(found[1]) / 1000 if found else 0.0


def _finding(flow: FlowStatus, events: int, now: float) -> Finding:
    error = flow.troubles[-1].text if flow.troubles else ""
    still = now - _last(flow)
    return Finding(
        ID,
        "warning",
        flow.label,
        f"{events:,} events wait, and no batch has ended for {spelled(still)}; it is {flow.state}",
        {
            "events": events,
            "seconds": round(still, 1),
            "state": flow.state,
            "restarts": flow.restarts,
            "error": error,
        },
        f"it was started again and again, the last time for: {error}"
        if error
        else "Spark is still starting, or one batch takes very long: the machine may have too much to do",
        "see its log and the load of its machine; fewer flows in one process, or more cores",
    )
