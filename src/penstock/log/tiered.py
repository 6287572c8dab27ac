"""A client of Kafka's that goes on in a topic's archive where Kafka no longer has the log."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import OFFSET_END, KafkaError, Message, TopicPartition

from penstock.log.client import TIMEOUT
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.log.archive.history import History
    from penstock.log.message import Received


class TieredClient(confluent_kafka.Consumer):
    """A consumer of one topic, for which Kafka and the topic's archive are one log.

    It asks Kafka first. Only if Kafka says that a position is not there any more, the archive is looked for:
    who reads what Kafka has pays nothing. The partition then rests in Kafka, still assigned, while its
    archived records are handed out, and goes on there at the offset that comes next.
    """

    def __init__(self, settings: Settings, configuration: dict[str, Any]) -> None:
        super().__init__(configuration)
        self._settings = settings
        self._histories: dict[str, History | None] = {}
        self._archived: dict[int, _Reading] = {}  # the partitions that are read from the archive at present
        self._positions: dict[int, int] = {}  # where the others are
        self._is_kafkas_turn = True

    def poll(self, timeout: float = -1) -> Message | None:
        """Return a message of Kafka's or, in turn, of the archive."""
        if not self._archived:
            message = super().poll(timeout)
            if message is None or self._noted([message]):
                return message
        found = self.consume(1, 0)
        return found[0] if found else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return messages of Kafka's and of the archive; Kafka also has to be asked so that it calls back."""
        if not self._archived:
            return self._noted(super().consume(num_messages, timeout))
        self._is_kafkas_turn = num_messages > 1 or not self._is_kafkas_turn
        asked = max(1, num_messages // 2)
        found = self._noted(super().consume(asked, 0)) if self._is_kafkas_turn else []
        return found + self._from_archive(num_messages - len(found))

    def seek(self, partition: TopicPartition) -> None:
        """Go on at another offset, wherever that is."""
        if self._archived.pop(partition.partition, None) is None:
            super().seek(partition)
        else:  # Kafka's client has given it up, and lets nobody seek in it
            super().incremental_unassign([partition])
            super().incremental_assign([partition])
        self._positions[partition.partition] = partition.offset

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions, and no others."""
        self._archived.clear()
        self._positions = {each.partition: each.offset for each in partitions}
        super().assign(partitions)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions, too."""
        self._positions |= {each.partition: each.offset for each in partitions}
        super().incremental_assign(partitions)

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions no longer."""
        for each in partitions:
            self._archived.pop(each.partition, None)
        super().incremental_unassign(partitions)

    def unassign(self) -> None:
        """Read nothing."""
        self._archived.clear()
        super().unassign()

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = TIMEOUT, cached: bool = False
    ) -> tuple[int, int]:
        """Return the first offset that is kept, here or in the archive, and the next one."""
        first, end = super().get_watermark_offsets(partition, timeout=timeout, cached=cached)
        history = self._history(partition.topic) if first > 0 else None
        archived = history.first(partition.partition) if history else None
        return first if archived is None else min(first, archived), end

    def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float = TIMEOUT
    ) -> list[TopicPartition]:
        """Return the first offsets that have a time or a later one, in the archive if it is there."""
        found = super().offsets_for_times(partitions, timeout=timeout)
        return [self._earlier(*each) for each in zip(partitions, found, strict=True)]

    def _earlier(self, asked: TopicPartition, found: TopicPartition) -> TopicPartition:
        """Kafka's answer, or that of the archive if it is further back."""
        first, _ = super().get_watermark_offsets(asked, timeout=TIMEOUT)
        history = self._history(asked.topic) if first > 0 else None
        archived = history.first_since(asked.partition, asked.offset) if history else None
        if archived is None or (found.offset not in (OFFSET_END, -1) and found.offset <= archived):
            return found
        return TopicPartition(asked.topic, asked.partition, archived)

    def _noted(self, messages: list[Message]) -> list[Message]:
        """Note how far Kafka was read; what it no longer has is read from the archive from now on."""
        for each in {each.partition(): each for each in messages if each.error() is None}.values():
            self._positions[each.partition()] = each.offset() + 1  # type: ignore[index,operator]
        errors = [each for each in messages if each.error() is not None]
        settled = [each for each in errors if self._is_settled(each)]
        return [each for each in messages if each not in settled] if settled else messages

    def _is_settled(self, error: Message) -> bool:
        """Whether the archive goes on where Kafka does not; or else the error is of a former place."""
        topic, partition, kind = error.topic(), error.partition(), error.error()
        if kind is None or kind.code() != KafkaError._AUTO_OFFSET_RESET or topic is None or partition is None:
            return False
        if partition in self._archived:
            return True  # it is said of a former assignment, too
        at = TopicPartition(topic, partition, self._positions.get(partition, -1))
        first, end = super().get_watermark_offsets(at, timeout=TIMEOUT)
        if first <= at.offset <= end:
            return True
        history = self._history(topic, again=True) if 0 <= at.offset < first else None
        if history is None or not history.holds(partition, at.offset):
            return False
        self._archived[partition] = _Reading(history, at)
        return True

    def _history(self, topic: str, *, again: bool = False) -> "History | None":
        """The archive of a topic; it is imported here, as few consumers need one."""
        from penstock.log.archive.history import find_history

        if topic not in self._histories or (again and self._histories[topic] is None):
            self._histories[topic] = find_history(self._settings, topic)
        return self._histories[topic]

    def _from_archive(self, size: int) -> list[Message]:
        """Messages of the partitions that are read from the archive, of each a part.

        They go on in Kafka where the archive ends, and not as soon as Kafka has what comes next: to ask it
        could take as long as it waits for records of other partitions.
        """
        found = list[Message]()
        for reading in list(self._archived.values()):
            share = max(1, (size - len(found)) // len(self._archived or (1,)))
            found += reading.take(share)
            if reading.is_at_end:
                self.seek(reading.place)
            if len(found) >= size:
                break
        return found


class _Reading:
    """A partition that is read from an archive, and the place that comes next."""

    def __init__(self, history: "History", place: TopicPartition) -> None:
        self.place, self.is_at_end = place, False
        self._history, self._next = history, place.offset
        self._messages: Iterator[Received] = iter(())

    def take(self, size: int) -> list["Received"]:
        """Return the next messages; none only if the archive is at its end."""
        found = list(islice(self._messages, size))
        while not found and self._is_open():
            found = list(islice(self._messages, size))
        self.place.offset = found[-1].offset() + 1 if found else self._next
        return found

    def _is_open(self) -> bool:
        """Open the segment that comes next, if there is one."""
        from penstock.log.archive.rows import message_of

        topic, partition = self.place.topic, self.place.partition
        found = self._history.read(partition, self._next)
        if found is None:
            self.is_at_end = True
            return False
        rows, self._next = found
        self._messages = (message_of(topic, partition, row) for row in rows)
        return True
