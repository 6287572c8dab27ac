"""All topics at once: what they keep and how they are set, in four questions whatever their number."""

from collections.abc import Iterable

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

from penstock.errors import LogError
from penstock.log import Broker
from penstock.log.client import asking, metadata
from penstock.ops.model import PartitionRange, TopicStatus

Partition = tuple[str, int]
_UNCOMMITTED, _COMMITTED = IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED


def topic_statuses(broker: Broker, unanswered: list[str]) -> tuple[TopicStatus, ...]:
    """Return the topics that a client sees, but Kafka's own."""
    with asking("list topics", broker.listener):
        found = metadata(broker.admin, broker.listener).topics
    topics = {name: each for name, each in sorted(found.items()) if not name.startswith("__")}
    places = [(name, number) for name, topic in topics.items() for number in topic.partitions]
    ranges, configs = _ranges(broker, places), _configs(broker, topics, unanswered)
    return tuple(
        TopicStatus(
            name,
            {number: ranges[name, number] for number in topic.partitions if (name, number) in ranges},
            max((len(each.replicas) for each in topic.partitions.values()), default=0),
            configs.get(name, {}),
        )
        for name, topic in topics.items()
    )


def offsets(
    broker: Broker, asked: dict[Partition, OffsetSpec], isolation: IsolationLevel = _UNCOMMITTED
) -> dict[Partition, int]:
    """Return an offset of each partition; those that have no leader now are left out."""
    if not asked:
        return {}
    specs = {TopicPartition(*place): spec for place, spec in asked.items()}
    answers = broker.admin.list_offsets(specs, isolation_level=isolation)
    found = {}
    for place, future in answers.items():
        try:
            found[place.topic, place.partition] = broker.wait(future).offset
        except KafkaException:
            continue
    if not found:
        raise LogError("can't read the offsets of topics: no partition answers")
    return found


def _ranges(broker: Broker, places: list[Partition]) -> dict[Partition, PartitionRange]:
    with asking("read the offsets of topics", broker.listener):
        first = offsets(broker, dict.fromkeys(places, OffsetSpec.earliest()))
        stable = offsets(broker, dict.fromkeys(places, OffsetSpec.latest()), _COMMITTED)
        end = offsets(broker, dict.fromkeys(places, OffsetSpec.latest()))
    known = [place for place in places if place in first and place in end]
    return {place: PartitionRange(first[place], end[place], stable.get(place)) for place in known}


def _configs(broker: Broker, names: Iterable[str], unanswered: list[str]) -> dict[str, dict[str, str]]:
    """The settings of topics, the broker's defaults included, where they may be seen."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    found, refused = {}, []
    for resource, future in (broker.admin.describe_configs(resources) if resources else {}).items():
        try:
            found[resource.name] = {each.name: each.value for each in broker.wait(future).values()}
        except KafkaException as error:
            refused.append(f"{resource.name} ({error.args[0].str()})")
    if refused:
        unanswered.append(f"settings of topics: {', '.join(refused[:3])}{' …' if refused[3:] else ''}")
    return found
