"""Share groups: what the broker must know before workers may share a topic as a queue."""

from collections.abc import Mapping
from datetime import timedelta

from penstock.errors import GroupError, TopicError
from penstock.log.broker import Broker

_LIMIT = "share.delivery.count.limit"
_LEASE = "share.record.lock.duration.ms"
_HIGHEST = "group.share.max.delivery.count.limit"
# Deliveries left to the broker for workers that die while they write a dead letter.
_SPARE = 3


def prepare(broker: Broker, group: str, limit: int, lease: timedelta) -> None:
    """Set a share group up for a queue, or say why the broker would not keep the queue's guarantees."""
    known = broker.group_config(group)
    if _LIMIT not in known:
        raise GroupError(
            f"the broker has no {_LIMIT} for group {group!r}",
            hint="queues need a broker that has it: Kafka 4.3",
        )
    wanted = {
        "share.auto.offset.reset": "earliest",
        "share.isolation.level": "read_committed",
        _LEASE: str(lease // timedelta(milliseconds=1)),
        _LIMIT: str(_deliveries(broker, group, int(known[_LIMIT]), limit)),
    }
    _configure(broker, group, {name: value for name, value in wanted.items() if known.get(name) != value})


def _deliveries(broker: Broker, group: str, now: int, limit: int) -> int:
    """Return a limit for the broker above ours: what reaches the broker's is dropped unseen."""
    if now >= limit + _SPARE:
        return now
    highest = int(broker.own_config()[_HIGHEST])
    if limit >= highest:
        raise GroupError(
            f"group {group!r} can't have a limit of {limit} deliveries: the broker drops a message unseen "
            f"after {highest}",
            hint=f"choose a limit below {highest}, or raise {_HIGHEST} on the broker",
        )
    return min(limit + _SPARE, highest)


def _configure(broker: Broker, group: str, changes: Mapping[str, str]) -> None:
    if not changes:
        return
    try:
        broker.configure_group(group, changes)
    except TopicError as error:
        raise GroupError(
            f"group {group!r} can't be a queue: {error.message}",
            hint="the broker's group.share.min.* and group.share.max.* settings are the bounds",
        ) from error
