"""A system as a JSON document: what is known, and the figures that are made of it."""

from dataclasses import asdict

from penstock.documents import JsonObject
from penstock.ops import flow_figures
from penstock.ops.model import GroupStatus, System, TopicStatus
from penstock.pipeline.flow_status import FlowStatus


def document(system: System) -> JsonObject:
    """Return the document; times are Unix seconds."""
    return {
        **asdict(system),
        "topics": [_topic(each) for each in system.topics],
        "groups": [_group(each) for each in system.groups],
        "flows": [_flow(each, system) for each in system.flows],
    }


def _topic(topic: TopicStatus) -> JsonObject:
    """The settings of topics are many, and shown by `penstock topics describe`."""
    found = asdict(topic) | {"events": topic.events, "retention_seconds": topic.retention_seconds}
    return {name: each for name, each in found.items() if name != "config"}


def _group(group: GroupStatus) -> JsonObject:
    lags = [asdict(each) | {"events": each.events} for each in group.lags]
    return asdict(group) | {"lags": lags, "events": group.events, "seconds": group.seconds}


def _flow(flow: FlowStatus, system: System) -> JsonObject:
    return asdict(flow) | {
        "state": flow_figures.state(flow, system.at),
        "rows_per_second": flow_figures.rate(flow),
        "latency_p50": flow_figures.percentile(flow, 0.5),
        "latency_p99": flow_figures.percentile(flow, 0.99),
        "behind": flow_figures.behind(flow, system.groups, system.at),
        "watermark_delay": flow_figures.watermark_delay(flow),
        "parts": flow_figures.phases(flow),
    }
