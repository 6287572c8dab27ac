"""Settings that contradict each other: each is allowed, together they lose or refuse events."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Evidence, Finding
from penstock.ops.doctor.illnesses.late_events import delay_of
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.model import System, TopicStatus

ID = "settings.contradiction"


def contradictions(system: System, probes: Probes) -> Iterator[Finding]:
    """Find topics and flows whose settings can't all be meant."""
    topics = {each.name: each for each in system.topics}
    for topic in system.topics:
        if not topic.is_internal:
            yield from _replicas(topic, probes)
            yield from _sizes(topic, probes)
    for flow in system.flows:
        delay = delay_of(flow)
        for topic in (topics[name] for name in flow.reads if name in topics):
            kept = topic.retention_seconds
            if kept is not None and delay is not None and delay > kept:
                yield _finding(
                    flow.label,
                    f"it waits {spelled(delay)} for late events of {topic.name}, which keeps them for "
                    f"{spelled(kept)}",
                    {"delay_seconds": round(delay, 1), "retention_seconds": kept, "topic": topic.name},
                    "a restart or a replay no longer finds what it waits for",
                    "keep events longer than they are waited for: raise retention=",
                )
    yield from _declared(topics, probes)


def _replicas(topic: TopicStatus, probes: Probes) -> Iterator[Finding]:
    wanted = int(topic.config.get("min.insync.replicas", probes.broker.get("min.insync.replicas", "1")))
    if wanted > topic.replication:
        yield _finding(
            topic.name,
            f"min.insync.replicas is {wanted}, and it has {topic.replication} replicas",
            {"min_insync_replicas": wanted, "replication": topic.replication},
            "every write with acks=all is refused",
            f"lower min.insync.replicas, or give it {wanted} replicas or more",
            "error",
        )
    if topic.replication == 1 and probes.brokers > 1 and probes.clients.get("acks", "all") in ("all", "-1"):
        yield _finding(
            topic.name,
            f"it has one replica on {probes.brokers} brokers, and producers wait for all replicas",
            {"replication": 1, "brokers": probes.brokers, "acks": "all"},
            "acks=all protects nothing: events are lost with the one broker that has them",
            "make the topic with replication=3",
        )


def _sizes(topic: TopicStatus, probes: Probes) -> Iterator[Finding]:
    sent = probes.clients.get("message.max.bytes")
    taken = topic.config.get("max.message.bytes", probes.broker.get("message.max.bytes"))
    if sent is not None and taken is not None and int(sent) > int(taken):
        yield _finding(
            topic.name,
            f"producers may send {int(sent):,} bytes, and it takes {int(taken):,}",
            {"message_max_bytes": int(sent), "max_message_bytes": int(taken)},
            "the broker refuses events between the two sizes, after the producer has accepted them",
            "raise max.message.bytes of the topic, or lower message.max.bytes of the clients",
        )


def _declared(topics: dict[str, TopicStatus], probes: Probes) -> Iterator[Finding]:
    longest = float(probes.broker.get("transaction.max.timeout.ms", "inf")) / 1000
    for flow in probes.declared:
        if flow.timeout > longest:
            yield _finding(
                flow.label,
                f"its transactions may take {spelled(flow.timeout)}, the broker allows {spelled(longest)}",
                {"timeout_seconds": flow.timeout, "allowed_seconds": longest},
                "the flow is refused when it starts",
                "lower timeout=, or raise the broker's transaction.max.timeout.ms",
                "error",
            )
        if flow.mode != "realtime" and flow.interval > flow.timeout:
            yield _finding(
                flow.label,
                f"it has a batch every {spelled(flow.interval)}, and its transactions end after "
                f"{spelled(flow.timeout)}",
                {"interval_seconds": flow.interval, "timeout_seconds": flow.timeout},
                "a batch of so many events may take longer than its transaction, and is then done again",
                "give it a timeout= that is longer than its longest batch",
                "info",
            )
        for name in flow.reads:
            policy = topics[name].config.get("cleanup.policy", "") if name in topics else ""
            if policy == "compact" and name not in flow.tables:
                yield _finding(
                    flow.label,
                    f"it reads {name} as a stream of events, and the topic is compacted",
                    {"topic": name, "cleanup_policy": policy},
                    "Kafka deletes all events of a key but the last: which of them a flow sees is chance",
                    "declare it as a Table, or set cleanup.policy=delete before events are gone",
                )


def _finding(
    subject: str, summary: str, evidence: Evidence, cause: str, hint: str, severity: str = "warning"
) -> Finding:
    return Finding(ID, severity, subject, summary, evidence, cause, hint)  # type: ignore[arg-type]
