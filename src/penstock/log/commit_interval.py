"""How often a reader commits, written down with its positions: the last one says when the next is due."""

import re

from confluent_kafka import TopicPartition

_INTERVAL = re.compile(r"penstock\.every=([0-9]+(?:\.[0-9]+)?)s")


def with_interval(position: TopicPartition, seconds: float | None) -> TopicPartition:
    """Return a position with the interval in the text that Kafka keeps with a commit.

    >>> interval_of(with_interval(TopicPartition("orders", 0, 17), 900))
    900.0
    """
    if seconds is None:
        return position
    place = (position.topic, position.partition, position.offset)
    return TopicPartition(*place, f"penstock.every={seconds:.3f}s")


def interval_of(position: TopicPartition) -> float | None:
    """Return how many seconds there are between a reader's commits, if its position says."""
    found = _INTERVAL.search(position.metadata or "")
    return float(found[1]) if found else None
