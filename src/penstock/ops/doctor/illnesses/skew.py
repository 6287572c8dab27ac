"""Skew: a partition that has many times the events of others."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.illnesses.hot_keys import hot_keys
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.trend import median
from penstock.ops.model import System, TopicStatus

ID = "partitions.skew"
_ENOUGH, _TIMES = 1_000, 4.0  # events of a topic, and how many times the usual one the largest has


def skew(system: System, probes: Probes) -> Iterator[Finding]:
    """Find topics one partition of which has four times the events of the usual one, without a hot key."""
    hot = {each.subject for each in hot_keys(system, probes)}
    for topic in system.topics:
        if topic.is_internal or topic.name in hot or len(topic.partitions) < 3 or topic.events < _ENOUGH:
            continue
        largest = max(topic.partitions, key=lambda number: topic.partitions[number].events)
        most = topic.partitions[largest].events
        usual = median([each.events for each in topic.partitions.values()])
        if most > _TIMES * max(usual, 1):
            yield _finding(topic, largest, most, usual)


def _finding(topic: TopicStatus, largest: int, most: int, usual: float) -> Finding:
    return Finding(
        ID,
        "info",
        topic.name,
        f"partition {largest} has {most:,} of its {topic.events:,} events, the usual one {usual:,.0f}",
        {
            "partition": largest,
            "events": most,
            "usual": round(usual),
            "share": round(most / topic.events, 2),
            "partitions": len(topic.partitions),
        },
        "it has few keys, or keys of very different weight, or partitions were added later",
        "take a key with more values; without a key, events are spread evenly",
    )
