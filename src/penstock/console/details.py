"""Details of one thing: what the snapshot has no room for, out of the last look."""

from dataclasses import asdict
from typing import Any

from penstock.console.snapshot import captured_topics, plain
from penstock.documents import JsonObject
from penstock.gateway.refusal import Refusal
from penstock.ops import flow_figures
from penstock.ops.model import GroupStatus, System
from penstock.pipeline.latency import BOUNDS


def topic_details(system: System, name: str) -> JsonObject:
    """Return a topic's partitions and settings, who reads it, and who writes it."""
    topic = _found({each.name: each for each in system.topics}, name, "topic")
    letters = [asdict(each) for each in system.dead_letters if each.source == name or each.topic == name]
    return {
        "name": name,
        "events": topic.events,
        "replication": topic.replication,
        "retention": topic.retention_seconds,
        "bytes": topic.bytes,
        "config": dict(sorted(topic.config.items())),
        "partitions": [
            {"partition": number, **asdict(each), "events": each.events}
            for number, each in sorted(topic.partitions.items())
        ],
        "groups": [
            _lag_of(each, name) for each in system.groups if any(lag.topic == name for lag in each.lags)
        ],
        "readers": [each.label for each in system.flows if name in (*each.reads, *each.looks_up)],
        "writers": [each.label for each in system.flows if name in each.writes],
        "dead_letters": letters,
    }


def group_details(system: System, name: str) -> JsonObject:
    """Return a group's members and its lag in each partition."""
    group = _found({each.group: each for each in system.groups}, name, "group")
    lags = [
        asdict(each) | {"events": each.events, "trend": [commit.lag for commit in each.commits]}
        for each in sorted(group.lags, key=lambda each: (each.topic, each.partition))
    ]
    flow = next((each.label for each in system.flows if each.identity.group == name), None)
    return asdict(group) | {"lags": lags, "events": group.events, "seconds": group.seconds, "flow": flow}


def flow_details(system: System, label: str, generation: int | None = None) -> JsonObject:
    """Return all that a flow's runner has published, and the figures that are made of it.

    Without a generation it is of the one that was heard of last.
    """
    wanted = [each for each in system.flows if generation in (None, each.generation)]
    known = {each.label: each for each in sorted(wanted, key=lambda each: each.at)}
    flow = _found(known, label, "flow")
    delay = flow_figures.watermark_delay(flow)
    group = next((each for each in system.groups if each.group == flow.identity.group), None)
    percentiles = {f"p{share}": flow_figures.percentile(flow, share / 100) for share in (50, 90, 99)}
    return asdict(flow) | {
        "now": system.at,
        "pipeline": flow.identity.pipeline,
        "state": flow_figures.state(flow, system.at),
        "rate": flow_figures.rate(flow),
        "percentiles": percentiles,
        "bounds": BOUNDS,
        "watermark_delay": delay,
        "parts": flow_figures.phases(flow),
        "group": flow.identity.group,
        "lag": None if group is None else {"events": group.events, "seconds": group.seconds},
    }


def capture_details(system: System, name: str) -> JsonObject:
    """Return how a capture is, and its topics."""
    capture = _found({each.capture: each for each in system.captures}, name, "capture")
    topics = [{"name": each.name, "events": each.events} for each in captured_topics(name, system)]
    copies = [plain(asdict(each)) for each in system.replicas if each.capture == name]
    return plain(asdict(capture)) | {"topics": topics, "replicas": copies}


def _lag_of(group: GroupStatus, topic: str) -> JsonObject:
    lags = [each for each in group.lags if each.topic == topic]
    return {
        "group": group.group,
        "kind": group.kind,
        "members": len(group.members),
        "judgement": group.judgement,
        "events": sum(each.events for each in lags),
        "seconds": max(each.seconds for each in lags),
    }


def _found(known: dict[str, Any], name: str, kind: str) -> Any:
    if name not in known:
        raise Refusal(
            404, f"console.unknown-{kind}", f"there is no {kind} {name[:100]!r}", hint="it may be gone"
        )
    return known[name]
