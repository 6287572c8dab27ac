"""A snapshot: all that the pages show of a system at a moment, small enough for a push a second."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from penstock.capture.status import CaptureStatus
from penstock.console.trends import Trends
from penstock.documents import JsonObject
from penstock.log.topic import DEAD_LETTERS
from penstock.ops import flow_figures
from penstock.ops.doctor.finding import Finding
from penstock.ops.model import GroupStatus, System, TopicStatus
from penstock.pipeline.flow_status import FlowStatus

_POINTS = 30  # of a flow's sparkline
_FLOW = (
    "label", "state", "version", "mode", "guarantee", "reads", "looks_up", "writes", "target", "restarts",
    "late", "malformed", "bottleneck", "generation", "interval",
)  # fmt: skip


def snapshot(system: System, trends: Trends, findings: Sequence[Finding]) -> JsonObject:
    """Return the document; times are Unix seconds."""
    letters = {each.source: each.waiting for each in system.dead_letters}
    return {
        "at": system.at,
        "health": health(findings),
        "services": [_service(each) for each in system.services],
        "topics": [_topic(each, trends.rate(each.name), letters) for each in system.topics],
        "groups": [_group(each) for each in system.groups],
        "flows": [_flow(each, system.at) for each in system.flows],
        "captures": [_capture(each, system) for each in system.captures],
        "replicas": [plain(asdict(each)) for each in system.replicas],
        "archives": [plain(asdict(each)) for each in system.archives],
        "dead_letters": [asdict(each) for each in system.dead_letters],
        "unanswered": list(system.unanswered),
    }


def health(findings: Sequence[Finding]) -> JsonObject:
    """Return how many findings there are of which severity, and the worst of them."""
    counts = {name: sum(each.severity == name for each in findings) for name in ("error", "warning", "info")}
    worst = "error" if counts["error"] else "warning" if counts["warning"] else "ok"
    first = next((f"{each.subject}: {each.summary}" for each in findings if each.is_trouble), "")
    return {"state": worst, "counts": counts, "first": first}


def plain(found: JsonObject) -> JsonObject:
    """Return a document whose times are Unix seconds, too."""
    return {name: each.timestamp() if isinstance(each, datetime) else each for name, each in found.items()}


def _service(service: Any) -> JsonObject:
    return {name: getattr(service, name) for name in ("name", "state", "address", "version", "uptime", "pid")}


def _topic(topic: TopicStatus, rate: float, letters: dict[str, int]) -> JsonObject:
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "events": topic.events,
        "end": sum(each.end for each in topic.partitions.values()),
        "rate": round(rate, 1),
        "bytes": topic.bytes,
        "retention": topic.retention_seconds,
        "compacted": "compact" in topic.config.get("cleanup.policy", ""),
        "internal": topic.is_internal,
        "letters": letters.get(topic.name, 0),
        "is_letters": topic.name.endswith(DEAD_LETTERS),
    }


def _group(group: GroupStatus) -> JsonObject:
    topics: dict[str, int] = {}
    for each in group.lags:
        topics[each.topic] = topics.get(each.topic, 0) + each.events
    return {
        "group": group.group,
        "kind": group.kind,
        "state": group.state,
        "members": len(group.members),
        "topics": topics,
        "events": group.events,
        "seconds": round(group.seconds, 1),
        "judgement": group.judgement,
        "returned": group.returned,
    }


def _flow(flow: FlowStatus, now: float) -> JsonObject:
    found = {name: getattr(flow, name) for name in _FLOW}
    last = flow_figures.last(flow)
    delay = flow_figures.watermark_delay(flow)
    return found | {
        "state": flow_figures.state(flow, now),
        "group": flow.identity.group,
        "pipeline": flow.identity.pipeline,
        "name": flow.identity.flow,
        "rate": round(flow_figures.rate(flow), 1),
        "p50": flow_figures.percentile(flow, 0.5),
        "p99": flow_figures.percentile(flow, 0.99),
        "delay": None if delay is None else round(delay, 1),
        "behind": last.behind if last else 0,
        "batch": last.seconds if last else None,
        "state_bytes": last.state_bytes if last else 0,
        "state_rows": last.state_rows if last else 0,
        "trend": [round(each.rows / max(1.0, each.seconds), 1) for each in flow.samples[-_POINTS:]],
    }


def _capture(capture: CaptureStatus, system: System) -> JsonObject:
    topics = [each.name for each in captured_topics(capture.capture, system)]
    return plain(asdict(capture)) | {"topics": topics}


def captured_topics(capture: str, system: System) -> list[TopicStatus]:
    """Return the topics of a capture: named after it, a schema and a table, unless it has another prefix."""
    written = {name for flow in system.flows for name in flow.writes}
    return [
        each
        for each in system.topics
        if each.name.startswith(f"{capture}.")
        and each.name.count(".") > capture.count(".") + 1
        and not each.name.endswith(DEAD_LETTERS)
        and each.name not in written
    ]
