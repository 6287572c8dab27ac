"""A client of Kafka's that goes on in a topic's archive where Kafka no longer has the log."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, Message, TopicPartition

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
        self._lost: dict[int, Message] = {}  # what Kafka has said that it no longer has
        self._is_kafkas_turn = True

    def poll(self, timeout: float = -1) -> Message | None:
        """Return a message of Kafka's or, in turn, of the archive."""
        if not self._archived and not self._lost:
            message = super().poll(timeout)
            if message is None or self._noted([message]):
                return message
        found = self.consume(1, 0)
        return found[0] if found else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return messages of Kafka's or, in turn, of the archive.

        Never of both: what was taken from one would be lost if the other one raised.
        """
        refused = self._settle()
        if refused or not self._archived:
            return refused or self._noted(super().consume(num_messages, timeout))
        self._is_kafkas_turn = not self._is_kafkas_turn
        found = self._noted(super().consume(num_messages, 0)) if self._is_kafkas_turn else []
        return found or self._from_archive(num_messages)

    def seek(self, partition: TopicPartition) -> None:
        """Go on at another offset, wherever that is."""
        try:
            super().seek(partition)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE or not self._is_assigned(partition):
                raise
            # Kafka's client has given it up, as what it no longer has, and lets nobody seek in it.
            super().incremental_unassign([partition])
            super().incremental_assign([partition])
        self._archived.pop(partition.partition, None)
        self._positions[partition.partition] = partition.offset

    def _is_assigned(self, partition: TopicPartition) -> bool:
        return partition.partition in {each.partition for each in self.assignment()}

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions, and no others."""
        self._archived.clear()
        self._lost.clear()
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
            self._lost.pop(each.partition, None)
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
        """Note how far Kafka was read, and what it no longer has: that is seen to when nothing is in hand."""
        for each in {each.partition(): each for each in messages if each.error() is None}.values():
            self._positions[each.partition()] = each.offset() + 1  # type: ignore[index,operator]
        lost = {each.partition(): each for each in messages if _is_lost(each)}
        self._lost |= lost  # type: ignore[arg-type]
        return [each for each in messages if each not in lost.values()] if lost else messages

    def _settle(self) -> list[Message]:
        """Turn to the archive where Kafka has no more; return the errors of what nobody has."""
        refused = list[Message]()
        for partition, error in list(self._lost.items()):
            if partition not in self._archived and not self._is_settled(partition, error):
                refused.append(error)
            del self._lost[partition]
        return refused

    def _is_settled(self, partition: int, error: Message) -> bool:
        """Whether the archive goes on where Kafka does not; or else the error is of a former place."""
        at = TopicPartition(str(error.topic()), partition, self._positions.get(partition, -1))
        first, end = super().get_watermark_offsets(at, timeout=TIMEOUT)
        if first <= at.offset <= end:
            return True
        history = self._history(at.topic, again=True) if 0 <= at.offset < first else None
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
        """Messages of one of the partitions that are read from the archive; the others have their turns.

        They go on in Kafka where the archive ends, and not as soon as Kafka has what comes next: to ask it
        could take as long as it waits for records of other partitions.
        """
        partition, reading = next(iter(self._archived.items()))
        found = reading.take(size)
        if found:
            self._archived[partition] = self._archived.pop(partition)
        else:
            self.seek(reading.place)
        return list(found)


def _is_lost(message: Message) -> bool:
    error = message.error()
    return (
        error is not None
        and error.code() == KafkaError._AUTO_OFFSET_RESET
        and message.partition() is not None
    )


class _Reading:
    """A partition that is read from an archive, and the place that comes next."""

    def __init__(self, history: "History", place: TopicPartition) -> None:
        self.place, self._history, self._next = place, history, place.offset
        self._messages: Iterator[Received] = iter(())

    def take(self, size: int) -> list["Received"]:
        """Return the next messages; none if the archive is at its end."""
        found = self._some(size)
        while not found and self._opens_next():
            found = self._some(size)
        self.place.offset = found[-1].offset() + 1 if found else self._next
        return found

    def _some(self, size: int) -> list["Received"]:
        """Messages of the segment that is open; one that can't be read is opened again at the same place."""
        try:
            return list(islice(self._messages, size))
        except BaseException:
            self._messages, self._next = iter(()), self.place.offset
            raise

    def _opens_next(self) -> bool:
        from penstock.log.archive.rows import message_of

        topic, partition = self.place.topic, self.place.partition
        found = self._history.read(partition, self._next)
        if found is None:
            return False
        rows, self._next = found
        self._messages = (message_of(topic, partition, row) for row in rows)
        return True
