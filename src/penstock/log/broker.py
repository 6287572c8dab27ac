"""The broker: what topics it has, and the questions and orders that are not about events."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from penstock.errors import AuthorizationError, PenstockError, TopicError
from penstock.log.access import denial, is_denied
from penstock.log.client import TIMEOUT, ErrorListener, asking, configuration, explain, metadata, patiently
from penstock.settings import Settings

T = TypeVar("T")
_OWN_SOURCES = (ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DYNAMIC_TOPIC_CONFIG)
_TICK = 0.5
_SEEN = 5.0  # seconds


@dataclass(frozen=True)
class TopicState:
    """A topic as the broker has it; `config` holds what differs from the broker's defaults."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str] = field(default_factory=dict)


class Broker:
    """The broker's administration.

    `Broker(settings).topics()` lists the topics by name; internal ones are left out.
    """

    def __init__(self, settings: Settings) -> None:
        self.listener = ErrorListener()
        with asking("make an admin client"):
            self.admin = AdminClient(configuration(settings, {}, {}, self.listener))

    def topics(self, names: Iterable[str] | None = None) -> dict[str, TopicState]:
        """Return the topics that exist, of those named or of all."""
        with asking("list topics", self.listener):
            found = metadata(self.admin, self.listener).topics
        wanted = (
            [name for name in found if not name.startswith("__")]
            if names is None
            else set(names) & set(found)
        )
        return {
            name: TopicState(
                name,
                len(found[name].partitions),
                len(found[name].partitions[0].replicas) if found[name].partitions else 0,
                config,
            )
            for name, config in sorted(self._configs(wanted).items())
        }

    def topic(self, name: str) -> TopicState:
        """Return one topic, or say that there is none of this name."""
        found = self.topics([name])
        if name not in found:
            raise self._missing(name)
        return found[name]

    def topic_ids(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of the topics that exist; one that was deleted and made again has another id."""
        wanted = sorted(set(names))
        with asking("read the ids of topics", self.listener):
            answers = self.admin.describe_topics(TopicCollection(wanted)) if wanted else {}
            found = {name: self._if_exists(future) for name, future in answers.items()}
        return {name: str(each.topic_id) for name, each in found.items() if each is not None}

    def exists(self, name: str) -> bool:
        """Say whether there is a topic of this name."""
        with asking("list topics", self.listener):
            found = name in metadata(self.admin, self.listener).topics
        if not found:
            self._refuse_hidden(name)
        return found

    def partitions(self, names: Iterable[str]) -> dict[str, int]:
        """Return how many partitions those topics have that exist; seeing them is all it takes."""
        with asking("list topics", self.listener):
            found = metadata(self.admin, self.listener).topics
        return {name: len(found[name].partitions) for name in names if name in found}

    def _partitions(self, name: str) -> list[TopicPartition]:
        found = self.partitions([name])
        if name not in found:
            raise self._missing(name)
        return [TopicPartition(name, number) for number in range(found[name])]

    def _missing(self, name: str) -> TopicError:
        """Return the error for a topic that is not in the list, unless it is only hidden."""
        self._refuse_hidden(name)
        hint = "run `penstock topics list` or `topics apply`"
        return TopicError(f"topic {name!r} does not exist", hint=hint)

    def _refuse_hidden(self, name: str) -> None:
        """A topic that the user may not see is left out of a list, but not kept secret if it is asked for."""
        try:
            self.wait(self.admin.describe_topics(TopicCollection([name]))[name])
        except KafkaException as error:
            if is_denied(error.args[0]):
                raise explain(f"find topic {name!r}", error.args[0], self.listener) from error

    def refuse_unreadable(self, name: str) -> None:
        """Refuse a topic that the user may see, but not read: a share consumer would wait in silence."""
        with asking(f"find topic {name!r}", self.listener):
            asked = self.admin.describe_topics(TopicCollection([name]), include_authorized_operations=True)
            allowed = self.wait(asked[name]).authorized_operations
        if allowed is not None and AclOperation.READ not in allowed:
            raise denial(f"read topic {name!r}", "topic", "READ is not granted", self.listener.user)

    def offsets(self, name: str) -> dict[int, tuple[int, int]]:
        """Return the first and the next offset of each partition of a topic."""
        partitions = self._partitions(name)
        with asking(f"read the offsets of {name!r}", self.listener):
            first, last = (
                self._list_offsets(partitions, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
            )
        return {number: (first[number], last[number]) for number in sorted(first)}

    def end(self, name: str, partition: int) -> int:
        """Return the offset that the next event of a partition gets."""
        with asking(f"read the end of {name!r}", self.listener):
            return self._list_offsets([TopicPartition(name, partition)], OffsetSpec.latest())[partition]

    def committed_end(self, name: str) -> dict[int, int]:
        """Return how far each partition can be read by those who read committed events only."""
        partitions = self._partitions(name)
        with asking(f"read the end of {name!r}", self.listener):
            return self._list_offsets(partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)

    def offsets_at(self, name: str, moment: datetime) -> dict[int, int]:
        """Return the first offset of each partition that was written at or after a moment, or its end."""
        partitions, spec = self._partitions(name), OffsetSpec.for_timestamp(int(moment.timestamp() * 1000))
        with asking(f"find a moment in {name!r}", self.listener):
            found = self._list_offsets(partitions, spec)
        ends = self.committed_end(name)
        return {
            number: min(found[number], end) if found[number] >= 0 else end for number, end in ends.items()
        }

    def committed_ranges(self, name: str) -> dict[int, tuple[int, int]]:
        """Return the range of each partition that readers of committed events can read."""
        first = self.offsets(name)
        return {number: (first[number][0], end) for number, end in self.committed_end(name).items()}

    def _list_offsets(
        self,
        partitions: list[TopicPartition],
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[int, int]:
        def ask() -> dict[int, int]:
            # A client that is not connected yet would rest for one to three seconds before it asks.
            metadata(self.admin, self.listener, partitions[0].topic)
            asked = self.admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=isolation)
            return {place.partition: self.wait(future).offset for place, future in asked.items()}

        return patiently(ask)

    def create(self, name: str, partitions: int, replication: int, config: Mapping[str, str]) -> None:
        with asking(f"create topic {name!r}", self.listener):
            wanted = NewTopic(name, partitions, replication, config=dict(config))
            self.wait(self.admin.create_topics([wanted])[name])
            self._await_leaders(name, partitions)

    def _await_leaders(self, name: str, partitions: int) -> None:
        """A topic that was just made is not there for everybody yet, nor do its leaders know of it at once.

        A producer that waits for no answer would lose what it sends in the meantime.
        """
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            found = self.admin.list_topics(name, timeout=TIMEOUT).topics[name].partitions
            if len(found) >= partitions and all(each.leader >= 0 for each in found.values()):
                break
            time.sleep(0.02)
        self._list_offsets(
            [TopicPartition(name, number) for number in range(partitions)], OffsetSpec.latest()
        )

    def ensure(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create a topic unless it exists, whoever comes first."""
        try:
            self.create(name, partitions, -1, config)
        except PenstockError as error:
            if not self._exists_after(error, name):
                raise

    def _exists_after(self, error: PenstockError, name: str) -> bool:
        """Say whether creating a topic failed because it exists; who may not create gets no other answer."""
        if isinstance(error, AuthorizationError):
            return name in metadata(self.admin, self.listener).topics
        cause = error.__cause__
        return isinstance(cause, KafkaException) and _code(cause) == KafkaError.TOPIC_ALREADY_EXISTS

    def grow(self, name: str, partitions: int) -> None:
        with asking(f"add partitions to {name!r}", self.listener):
            self.wait(self.admin.create_partitions([NewPartitions(name, partitions)])[name])
            self._await_leaders(name, partitions)

    def configure(self, name: str, changes: Mapping[str, str]) -> None:
        self._configure(ResourceType.TOPIC, name, changes)

    def topic_config(self, name: str) -> dict[str, str]:
        """Return the settings of a topic, the broker's defaults included."""
        return self._described(ResourceType.TOPIC, name)

    def delete_records(self, name: str, before: Mapping[int, int]) -> None:
        """Delete the records of partitions before an offset of each."""
        places = [TopicPartition(name, *each) for each in before.items()]
        with asking(f"delete records of {name!r}", self.listener):
            for each in self.admin.delete_records(places).values() if places else ():
                self.wait(each)

    def group_config(self, group: str) -> dict[str, str]:
        """Return the settings of a group, the broker's defaults included; the group need not exist."""
        return self._described(ResourceType.GROUP, group)

    def own_config(self) -> dict[str, str]:
        """Return the settings of one of the cluster's brokers."""
        with asking("list brokers", self.listener):
            number = min(metadata(self.admin, self.listener).brokers)
        return self._described(ResourceType.BROKER, str(number))

    def configure_group(self, group: str, changes: Mapping[str, str]) -> None:
        self._configure(ResourceType.GROUP, group, changes)

    def delete(self, name: str) -> None:
        with asking(f"delete topic {name!r}", self.listener):
            self.wait(self.admin.delete_topics([name])[name])
            self._await_absence(name)

    def _await_absence(self, name: str) -> None:
        """The controller answers when the topic is gone for it; the brokers follow it a moment later."""
        deadline = time.monotonic() + _SEEN
        while time.monotonic() < deadline and name in metadata(self.admin, self.listener).topics:
            time.sleep(0.02)

    def _configure(self, kind: ResourceType, name: str, changes: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in changes.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        before = self._described(kind, name)
        with asking(f"configure {name!r}", self.listener):
            self.wait(self.admin.incremental_alter_configs([resource])[resource])
        with suppress(PenstockError):  # it is done, whether or not it can be seen
            self._await_settings(kind, name, before, changes)

    def _await_settings(
        self, kind: ResourceType, name: str, before: Mapping[str, str], wanted: Mapping[str, str]
    ) -> None:
        """The controller answers when it has taken the change; the brokers follow it a moment later.

        Kafka may spell a value in another way than it was wanted: it is there once it is not what it was.
        """
        deadline, old = time.monotonic() + _SEEN, {key for key in wanted if before.get(key) != wanted[key]}
        while old and time.monotonic() < deadline:
            time.sleep(0.02)
            now = self._described(kind, name)
            old = {key for key in old if now.get(key) == before.get(key)}

    def _configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """The settings of topics, but of those that were deleted since they were listed."""
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        if not resources:
            return {}
        with asking("read topic settings", self.listener):
            answers = {
                resource.name: self._if_exists(future)
                for resource, future in self.admin.describe_configs(resources).items()
            }
        return {
            name: {entry.name: entry.value for entry in answer.values() if entry.source in _OWN_SOURCES}
            for name, answer in answers.items()
            if answer is not None
        }

    def _described(self, kind: ResourceType, name: str) -> dict[str, str]:
        resource = ConfigResource(kind, name)
        with asking(f"read the settings of {kind.name.lower()} {name!r}", self.listener):
            answer = self.wait(self.admin.describe_configs([resource])[resource])
        return {entry.name: entry.value for entry in answer.values()}

    def _if_exists(self, future: "Future[T]") -> T | None:
        try:
            return self.wait(future)
        except KafkaException as error:
            if _code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return None

    def wait(self, future: "Future[T]") -> T:
        """Wait for an answer, but not for one of a broker that does not let us in."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                return future.result(timeout=_TICK)
            except TimeoutError:
                self.admin.poll(0)
                if self.listener.refusal is not None or time.monotonic() > deadline:
                    raise


def _code(error: KafkaException) -> int:
    return int(error.args[0].code())
