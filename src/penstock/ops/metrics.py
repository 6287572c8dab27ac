"""The metrics of a system: every figure by its conventional name, in seconds and bytes.

No label is made of keys or events: there are as many values as partitions, groups and flows.
"""

from collections.abc import Iterable, Iterator

from penstock.ops import flow_figures
from penstock.ops.exposition import Metric, Point, histogram
from penstock.ops.model import GroupStatus, Judgement, PartitionLag, System, TopicStatus
from penstock.pipeline.flow_status import FlowStatus
from penstock.pipeline.latency import BOUNDS

_BY_JUDGEMENT: tuple[Judgement, ...] = ("ok", "warning", "stalled", "stopped", "rewind", "unknown")


def metrics(system: System) -> list[Metric]:
    """Return all metrics, those without a value too."""
    return [
        *_topics(system.topics),
        *_groups(system.groups),
        *_flows(system.flows, system.at),
        *_batches(system.flows),
        *_kept(system),
        *_captures(system),
        _gauge("penstock_service_up", "Whether a service on this machine runs.", (
            Point(each.state == "running", {"service": each.name}) for each in system.services
        )),
        _gauge("penstock_scrape_errors", "Questions that were not answered at this scrape.", [
            Point(len(system.unanswered), {})
        ]),
    ]  # fmt: skip


def _topics(topics: Iterable[TopicStatus]) -> Iterator[Metric]:
    kept = [
        ({"topic": topic.name, "partition": str(number)}, each)
        for topic in topics
        for number, each in sorted(topic.partitions.items())
    ]
    yield _gauge(
        "kafka_topic_partition_current_offset",
        "The offset that the next event of a partition gets.",
        (Point(each.end, labels) for labels, each in kept),
    )
    yield _gauge(
        "kafka_topic_partition_oldest_offset",
        "The first offset that a partition still has.",
        (Point(each.first, labels) for labels, each in kept),
    )


def _groups(groups: Iterable[GroupStatus]) -> Iterator[Metric]:
    groups = list(groups)
    lags = [(_lag_labels(group, each), each) for group in groups for each in group.lags]
    yield _gauge(
        "kafka_consumergroup_current_offset",
        "The position of a group in a partition.",
        (Point(each.position, labels) for labels, each in lags),
    )
    yield _gauge(
        "kafka_consumergroup_lag",
        "Events of a partition that a group has not read.",
        (Point(each.events, labels) for labels, each in lags),
    )
    yield _gauge(
        "kafka_consumergroup_lag_seconds",
        "Age of the oldest event of a partition that a group has not read.",
        (Point(each.seconds, labels) for labels, each in lags),
    )
    yield _gauge(
        "penstock_retention_left_seconds",
        "Time until retention deletes the oldest event that a group has not read.",
        (Point(each.left, labels) for labels, each in lags if each.left is not None),
    )
    yield _gauge(
        "penstock_consumergroup_members",
        "Members of a group.",
        (Point(len(group.members), {"group": group.group}) for group in groups),
    )
    yield _gauge(
        "penstock_consumergroup_judgement",
        "1 for the judgement of a group's lag over the last minutes, 0 for the others.",
        (
            Point(group.judgement == each, {"group": group.group, "judgement": each})
            for group in groups
            for each in _BY_JUDGEMENT
        ),
    )


def _lag_labels(group: GroupStatus, lag: PartitionLag) -> dict[str, str]:
    return {"group": group.group, "topic": lag.topic, "partition": str(lag.partition)}


def _flows(flows: Iterable[FlowStatus], now: float) -> Iterator[Metric]:
    flows = list(flows)
    yield _gauge(
        "penstock_flow_up",
        "Whether a flow is at work, and its runner says so.",
        # A shadow ends when it has caught up or is put in place, and nobody waits for its results.
        (Point(flow_figures.is_at_work(each, now), _labels(each)) for each in flows if not each.shadow),
    )
    yield _counter(
        "penstock_flow_rows_total", "Rows read.", (Point(each.rows, _labels(each)) for each in flows)
    )
    yield _counter(
        "penstock_flow_batches_total",
        "Batches finished.",
        (Point(each.batches, _labels(each)) for each in flows),
    )
    yield _counter(
        "penstock_flow_late_rows_total",
        "Rows that came behind the watermark, and were dropped.",
        (Point(each.late, _labels(each)) for each in flows),
    )
    yield _counter(
        "penstock_flow_malformed_rows_total",
        "Records that could not be decoded.",
        (Point(each.malformed, _labels(each)) for each in flows),
    )
    yield _counter(
        "penstock_flow_restarts_total",
        "Times that a flow was started again after trouble.",
        (Point(each.restarts, _labels(each)) for each in flows),
    )
    yield Metric(
        "penstock_flow_latency_seconds",
        "histogram",
        "Time from an event's arrival in the log to its results, at most.",
        tuple(point for each in flows if each.latency.counts for point in _latency(each)),
    )


def _latency(flow: FlowStatus) -> tuple[Point, ...]:
    found = flow.latency
    return histogram(BOUNDS, found.counts, found.count, found.sum, _labels(flow))


def _batches(flows: Iterable[FlowStatus]) -> Iterator[Metric]:
    """Figures of the last batch; a flow that has had none has no value."""
    last = [(_labels(each), each, each.samples[-1]) for each in flows if each.samples]
    yield _gauge(
        "penstock_flow_batch_duration_seconds",
        "Duration of the last batch by phase, Spark's names; phase triggerExecution is the whole batch.",
        (
            Point(took, {**labels, "phase": phase})
            for labels, flow, _ in last
            for phase, took in flow.phases.items()
        ),
    )
    yield _gauge(
        "penstock_flow_behind_rows",
        "Records that waited for a flow when its last batch began.",
        (Point(each.behind, labels) for labels, _, each in last),
    )
    delays = [(labels, flow_figures.watermark_delay(flow)) for labels, flow, _ in last]
    yield _gauge(
        "penstock_flow_watermark_delay_seconds",
        "How far the watermark trails the clock.",
        (Point(delay, labels) for labels, delay in delays if delay is not None),
    )
    yield _gauge(
        "penstock_flow_state_rows",
        "Rows of state, where Spark counts them.",
        (Point(each.state_rows, labels) for labels, _, each in last if each.state_rows is not None),
    )
    yield _gauge(
        "penstock_flow_state_bytes",
        "Memory of state.",
        (Point(each.state_bytes, labels) for labels, _, each in last),
    )


def _kept(system: System) -> Iterator[Metric]:
    yield _gauge(
        "penstock_dead_letters",
        "Dead letters that wait for a redrive, by the topic that they came from.",
        (Point(each.waiting, {"topic": each.source}) for each in system.dead_letters),
    )
    yield _gauge(
        "penstock_dead_letters_kept",
        "Dead letters that are kept, redriven ones too, by the topic that they came from.",
        (Point(each.kept, {"topic": each.source}) for each in system.dead_letters),
    )
    yield _gauge(
        "penstock_archive_behind_offsets",
        "Offsets of a topic that are not archived.",
        (Point(each.behind, {"topic": each.topic}) for each in system.archives),
    )


def _captures(system: System) -> Iterator[Metric]:
    captures = [({"capture": each.capture}, each) for each in system.captures]
    replicas = [({"replica": each.replica}, each) for each in system.replicas]
    yield _gauge(
        "penstock_capture_up",
        "Whether a capture runs.",
        (Point(each.state == "running", labels) for labels, each in captures),
    )
    yield _gauge(
        "penstock_capture_lag_bytes",
        "Bytes of the database's log that a capture has not read.",
        (Point(each.behind, labels) for labels, each in captures if each.behind is not None),
    )
    yield _gauge(
        "penstock_capture_lag_seconds",
        "Age of the last change that a capture has written, while it is behind.",
        (Point(each.seconds, labels) for labels, each in captures if each.seconds is not None),
    )
    yield _gauge(
        "penstock_capture_retained_bytes",
        "Bytes of its log that the database keeps for a capture.",
        (Point(each.retained, labels) for labels, each in captures if each.retained is not None),
    )
    yield _gauge(
        "penstock_replica_up",
        "Whether a replica runs.",
        (Point(each.state == "running", labels) for labels, each in replicas),
    )
    yield _gauge(
        "penstock_replica_lag_records",
        "Records that a replica has not applied.",
        (Point(each.lag, labels) for labels, each in replicas),
    )
    yield _gauge(
        "penstock_replica_lag_seconds",
        "Age of the last change that a replica has applied, while it is behind.",
        (Point(each.seconds, labels) for labels, each in replicas),
    )


def _labels(flow: FlowStatus) -> dict[str, str]:
    """A flow that is rebuilt beside the one at work has a generation."""
    identity = flow.identity
    found = {"pipeline": identity.pipeline, "flow": identity.flow}
    if identity.namespace:
        found["namespace"] = identity.namespace
    return found | {"generation": str(flow.generation)} if flow.generation else found


def _gauge(name: str, help: str, points: Iterable[Point]) -> Metric:
    return Metric(name, "gauge", help, tuple(points))


def _counter(name: str, help: str, points: Iterable[Point]) -> Metric:
    return Metric(name, "counter", help, tuple(points))
