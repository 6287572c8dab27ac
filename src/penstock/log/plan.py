"""The difference between topics as declared and topics as they are, and how to close it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.errors import TopicError
from penstock.log.broker import Broker, TopicState
from penstock.log.topic import Table, Topic

Action = Literal["create", "grow", "configure", "keep", "refuse"]
_GROWN = (
    "it is a table with {} partitions, {} declared; keys would move to other partitions, and their old rows "
    "would stay behind and could win over new ones; declare a table of another name with the partitions "
    "wanted, and copy the rows into it"
)


@dataclass(frozen=True)
class Change:
    """What would be done to one topic; `settings` maps a name to (what it is, what it will be)."""

    topic: str
    action: Action
    partitions: tuple[int, int]
    settings: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)
    reason: str | None = None


def plan(topics: Iterable[Topic[Any]], broker: Broker) -> list[Change]:
    """Return what has to change on the broker, topic by topic; nothing is changed."""
    wanted = list(topics)
    _refuse_doubles(wanted)
    actual = broker.topics([topic.name for topic in wanted])
    return [_compare(topic, actual.get(topic.name)) for topic in wanted]


def apply(topics: Iterable[Topic[Any]], broker: Broker) -> list[Change]:
    """Bring the broker to what is declared; if anything has to be refused, nothing is changed."""
    wanted = {topic.name: topic for topic in topics}
    changes = plan(wanted.values(), broker)
    refused = [change for change in changes if change.action == "refuse"]
    if refused:
        raise TopicError(
            "; ".join(f"topic {change.topic!r}: {change.reason}" for change in refused),
            hint="correct the declaration, or copy the events to a new topic",
        )
    for change in changes:
        _carry_out(change, wanted[change.topic], broker)
    return changes


def _refuse_doubles(topics: list[Topic[Any]]) -> None:
    by_name: dict[str, Topic[Any]] = {}
    for topic in topics:
        if by_name.setdefault(topic.name, topic) != topic:
            raise TopicError(f"topic {topic.name!r} is declared twice, and not alike")


def _compare(topic: Topic[Any], actual: TopicState | None) -> Change:
    if actual is None:
        settings: dict[str, tuple[str | None, str]] = {
            name: (None, value) for name, value in topic.config.items()
        }
        return Change(topic.name, "create", (0, topic.partitions), settings)
    partitions = (actual.partitions, topic.partitions)
    settings = {
        name: (actual.config.get(name), value)
        for name, value in topic.config.items()
        if actual.config.get(name) != value
    }
    if topic.partitions < actual.partitions:
        reason = (
            f"it has {actual.partitions} partitions, {topic.partitions} declared; Kafka can't shrink a topic"
        )
        return Change(topic.name, "refuse", partitions, settings, reason)
    if topic.partitions > actual.partitions and isinstance(topic, Table):
        return Change(topic.name, "refuse", partitions, settings, _GROWN.format(*partitions))
    if topic.partitions > actual.partitions:
        keyed = "new events of a key may go to another partition than the old ones" if topic.key else None
        return Change(topic.name, "grow", partitions, settings, keyed)
    return Change(topic.name, "configure" if settings else "keep", partitions, settings)


def _carry_out(change: Change, topic: Topic[Any], broker: Broker) -> None:
    if change.action == "create":
        broker.create(topic.name, topic.partitions, topic.replication, topic.config)
        return
    if change.action == "grow":
        broker.grow(topic.name, topic.partitions)
    if change.settings:
        broker.configure(topic.name, {name: after for name, (_, after) in change.settings.items()})
