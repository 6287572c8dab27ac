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
    who reads what Kafka has pays nothing. The partition then rests in Kafka while its archived records are
    handed out, and goes on there at the offset that comes next, so that nothing is read twice.
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
        if self._archived:
            found = self.consume(1, 0)
        else:
            message = super().poll(timeout)
            found = self._noted([message]) if message is not None else []
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
        super().seek(partition)
        self._positions[partition.partition] = partition.offset
        if self._archived.pop(partition.partition, None) is not None:
            super().resume([partition])

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions, and no others."""
        self._leave_archive(list(self._archived))
        self._positions = {each.partition: each.offset for each in partitions}
        super().assign(partitions)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions, too."""
        self._positions |= {each.partition: each.offset for each in partitions}
        super().incremental_assign(partitions)

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions no longer."""
        self._leave_archive([each.partition for each in partitions])
        super().incremental_unassign(partitions)

    def unassign(self) -> None:
        """Read nothing."""
        self._leave_archive(list(self._archived))
        super().unassign()

    def _leave_archive(self, partitions: list[int]) -> None:
        """Let partitions no longer rest in Kafka: they may be read there when they come back."""
        left = [self._archived.pop(each) for each in partitions if each in self._archived]
        if left:
            super().resume([each.place for each in left])

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
        at = TopicPartition(topic, partition, self._positions.get(partition, -1))
        first, end = super().get_watermark_offsets(at, timeout=TIMEOUT)
        if first <= at.offset <= end:
            return True
        history = self._history(topic, again=True) if 0 <= at.offset < first else None
        if history is None or history.read(partition, at.offset) is None:
            return False
        super().pause([at])
        self._archived[partition] = _Reading(history, at, error)
        return True

    def _history(self, topic: str, *, again: bool = False) -> "History | None":
        """The archive of a topic; it is imported here, as few consumers need one."""
        from penstock.log.archive.history import find_history

        if topic not in self._histories or (again and self._histories[topic] is None):
            self._histories[topic] = find_history(self._settings, topic)
        return self._histories[topic]

    def _from_archive(self, size: int) -> list[Message]:
        """Messages of the partitions that are read from the archive, of each a part."""
        found = list[Message]()
        for partition, reading in list(self._archived.items()):
            if len(found) >= size:
                break
            share = max(1, (size - len(found)) // len(self._archived))
            some = reading.take(share)
            found += some or self._next_segment(partition, reading)
        return found

    def _next_segment(self, partition: int, reading: "_Reading") -> list[Message]:
        """Go on in Kafka if it has what comes next, or else in the archive; if nobody has it, say so."""
        first, _ = super().get_watermark_offsets(reading.place, timeout=TIMEOUT)
        if reading.place.offset >= first:
            self.seek(reading.place)
        elif not reading.open():
            self._leave_archive([partition])
            return [reading.error]
        return []


class _Reading:
    """A partition that is read from an archive, and its place; `error` is what Kafka said of that."""

    def __init__(self, history: "History", place: TopicPartition, error: Message) -> None:
        self.place, self.error = place, error
        self._history, self._next = history, place.offset
        self._messages: Iterator[Received] = iter(())

    def open(self) -> bool:
        """Open the segment that comes next; False if there is none."""
        from penstock.log.archive.rows import message_of

        topic, partition = self.place.topic, self.place.partition
        found = self._history.read(partition, self.place.offset)
        if found is None:
            return False
        rows, self._next = found
        self._messages = (message_of(topic, partition, row) for row in rows)
        return True

    def take(self, size: int) -> list["Received"]:
        """Return messages of the segment that is open; none if it is at its end."""
        found = list(islice(self._messages, size))
        self.place.offset = found[-1].offset() + 1 if found else self._next
        return found
