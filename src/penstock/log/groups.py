"""Consumer groups: who reads, how far they are behind, and setting them to another place."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ConsumerGroupListing, MemberDescription

from penstock.errors import GroupError
from penstock.log.broker import Broker
from penstock.log.client import (
    TIMEOUT,
    Configuration,
    ErrorListener,
    asking,
    committed,
    configuration,
    metadata,
    patiently,
)
from penstock.log.commit_interval import with_interval
from penstock.log.identity import is_foreign, mark
from penstock.log.ledger import Offsets
from penstock.log.positions import Position
from penstock.log.tiered import TieredClient
from penstock.settings import Settings


@dataclass(frozen=True)
class GroupState:
    """A group, its state by Kafka's name for it and its members."""

    group: str
    state: str
    members: tuple["Member", ...] = ()


@dataclass(frozen=True)
class Member:
    """A member of a group and the partitions it reads."""

    id: str
    static_id: str | None
    host: str
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Lag:
    """How far a group is behind in one partition; `seconds` is the age of its oldest unread event."""

    topic: str
    partition: int
    position: int
    end: int
    seconds: float

    @property
    def events(self) -> int:
        return max(0, self.end - self.position)


@dataclass(frozen=True)
class Move:
    """A group's position in one partition before and after a reset; before is None if it had none."""

    partition: int
    before: int | None
    after: int


class Groups:
    """Questions and orders about consumer groups."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._broker = Broker(settings)
        self._admin, self._listener = self._broker.admin, self._broker.listener

    def all(self) -> list[GroupState]:
        """Return every group with its state, without members."""
        with asking("list groups", self._listener):
            found = patiently(self._list)
        states = [GroupState(each.group_id, each.state.name.lower()) for each in found]
        return sorted(states, key=lambda state: state.group)

    def _list(self) -> list[ConsumerGroupListing]:
        found = self._broker.wait(self._admin.list_consumer_groups())
        for error in found.errors:
            raise error if isinstance(error, KafkaException) else KafkaException(error)
        listed: list[ConsumerGroupListing] = found.valid
        return listed

    def describe(self, group: str) -> GroupState:
        """Return a group with its members."""
        with asking(f"describe group {group!r}", self._listener):
            ask = self._admin.describe_consumer_groups
            found = patiently(lambda: self._broker.wait(ask([group])[group]))
        state = found.state.name.lower()
        if state == "dead":
            raise GroupError(f"group {group!r} does not exist", hint="run `penstock groups list`")
        return GroupState(group, state, tuple(member_of(each) for each in found.members))

    def lag(self, group: str, now: datetime | None = None) -> list[Lag]:
        """Return how far a group is behind, partition by partition."""
        moment = datetime.now(UTC) if now is None else now
        with _reader(self._settings, group, self._listener) as reader:
            return [_lag(reader, each, moment) for each in self._positions(reader, group)]

    def reset(self, group: str, topic: str, to: Position, *, dry_run: bool = True) -> list[Move]:
        """Move a group to another place in a topic; with `dry_run` only say what would be done."""
        state = self.describe(group)
        if state.members:
            raise GroupError(
                f"group {group!r} has {len(state.members)} members",
                hint="stop them, then reset its positions",
            )
        broker = self._broker
        count, id = broker.topic(topic).partitions, broker.topic_ids([topic]).get(topic)
        partitions = [TopicPartition(topic, number) for number in range(count)]
        with (
            _reader(self._settings, group, self._listener) as reader,
            asking(f"find positions in {topic!r}", self._listener),
        ):
            before = {
                each.partition: each.offset for each in self._positions(reader, group) if each.topic == topic
            }
            after = to.resolve(reader, partitions)
            kept = {each.partition: reader.get_watermark_offsets(each, timeout=TIMEOUT) for each in after}
            _refuse_outside(to, after, kept)
        if not dry_run:
            request = [ConsumerGroupTopicPartitions(group, [mark(each, id) for each in after])]
            with asking(f"reset group {group!r}", self._listener):
                self._broker.wait(self._admin.alter_consumer_group_offsets(request)[group])
        return [Move(each.partition, before.get(each.partition), each.offset) for each in after]

    def delete(self, group: str) -> bool:
        """Delete a group and its positions; False if there was none."""
        with asking(f"delete group {group!r}", self._listener):
            try:
                patiently(lambda: self._broker.wait(self._admin.delete_consumer_groups([group])[group]))
            except KafkaException as error:
                if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return False
                raise
        return True

    def positions(self, group: str) -> Offsets:
        """Return where a group stands, by topic and partition."""
        found: dict[str, dict[int, int]] = {}
        for each in self.committed(group):
            found.setdefault(each.topic, {})[each.partition] = each.offset
        return found

    def committed(self, group: str) -> list[TopicPartition]:
        """Return a group's positions with what was written down with them."""
        with _reader(self._settings, group, self._listener) as reader:
            return self._positions(reader, group)

    def positions_in(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return where a group stands in a topic; a position in one that had its name before is none."""
        id = self._broker.topic_ids([topic]).get(topic)
        places = [TopicPartition(topic, number) for number in partitions]
        what = f"read the positions of group {group!r}"
        with _reader(self._settings, group, self._listener) as reader, asking(what, self._listener):
            found = patiently(lambda: committed(reader, self._listener, places))
        return {
            each.partition: each.offset for each in found if each.offset >= 0 and not is_foreign(each, id)
        }

    def place(self, group: str, offsets: Offsets, every: float | None = None) -> None:
        """Write down how far somebody has read who joins no group, so that every tool sees the lag.

        `every` says how many seconds there usually are between two such positions.
        """
        places = [
            with_interval(TopicPartition(topic, partition, offset), every)
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        ]
        if places:  # by a consumer: librdkafka's admin client gets no answer after its connection was cut
            what = f"write the positions of {group!r}"
            with _reader(self._settings, group, self._listener) as reader, asking(what, self._listener):
                # A commit would take long to say that the group is denied.
                patiently(lambda: committed(reader, self._listener, places))
                patiently(lambda: reader.commit(offsets=places, asynchronous=False))

    def _positions(self, reader: Consumer, group: str) -> list[TopicPartition]:
        """Asked of a consumer: librdkafka's admin client crashes if the coordinator is not ready yet."""
        with asking(f"read the positions of group {group!r}", self._listener):
            topics = metadata(self._admin, self._listener).topics
            all_partitions = [
                TopicPartition(name, number)
                for name, topic in topics.items()
                if not name.startswith("__")
                for number in topic.partitions
            ]
            found = (
                patiently(lambda: committed(reader, self._listener, all_partitions)) if all_partitions else []
            )
        known = [each for each in found if each.offset >= 0]
        return sorted(known, key=lambda each: (each.topic, each.partition))


class _reader:
    """A client that looks into partitions and a group's positions, and joins nothing."""

    def __init__(self, settings: Settings, group: str, listener: ErrorListener) -> None:
        demanded: Configuration = {
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",  # what Kafka no longer has may be in an archive
            "enable.partition.eof": True,  # so that nobody waits where only markers of transactions are left
            "fetch.wait.max.ms": 10,
        }
        self._client = TieredClient(settings, configuration(settings, {}, demanded, listener))

    def __enter__(self) -> Consumer:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


def _refuse_outside(to: Position, after: list[TopicPartition], kept: dict[int, tuple[int, int]]) -> None:
    """Refuse offsets of partitions that are not there, and those that Kafka would silently replace."""
    wrong = [f"there is no partition {number}" for number in sorted(to.offsets.keys() - kept.keys())]
    wrong += [
        f"partition {each.partition} has offsets {low} to {end}, not {each.offset}"
        for each in after
        for low, end in [kept[each.partition]]
        if each.partition in to.offsets and not low <= each.offset <= end
    ]
    if wrong:
        raise GroupError("; ".join(wrong), hint="run `penstock topics describe` to see what is kept")


def _lag(reader: Consumer, position: TopicPartition, now: datetime) -> Lag:
    with asking(f"look into {position.topic!r}"):
        low, end = reader.get_watermark_offsets(position, timeout=TIMEOUT)
    at = max(position.offset, low)
    seconds = _age(reader, TopicPartition(position.topic, position.partition, at), now) if at < end else 0.0
    return Lag(position.topic, position.partition, position.offset, end, seconds)


def _age(reader: Consumer, place: TopicPartition, now: datetime) -> float:
    """The age of the first event from a place on; 0 where there is none that can be read."""
    reader.assign([place])
    message = reader.poll(TIMEOUT)
    reader.unassign()
    if message is None or message.error() is not None:
        return 0.0
    return max(0.0, now.timestamp() - message.timestamp()[1] / 1000)


def member_of(found: MemberDescription) -> Member:
    held = found.assignment.topic_partitions if found.assignment else []
    partitions = tuple(sorted((each.topic, each.partition) for each in held))
    return Member(found.member_id, found.group_instance_id or None, found.host, partitions)
