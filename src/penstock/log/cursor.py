"""A cursor: reads a topic's committed records from a place to an end, in no group."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Self, TypeGuard

import confluent_kafka
from confluent_kafka import KafkaError, Message, TopicPartition

from penstock.errors import LogError
from penstock.log.client import (
    TIMEOUT,
    Configuration,
    ErrorListener,
    asking,
    configuration,
    explain,
    is_transient,
    metadata,
    patiently,
)
from penstock.log.message import Received
from penstock.log.positions import Position, from_beginning, from_end
from penstock.log.tiered import TieredClient
from penstock.settings import Settings

_TICK = 0.1
# A partition's end, and that a group is denied: what is in no group needs no permission for one.
_HARMLESS = (KafkaError._PARTITION_EOF, KafkaError.GROUP_AUTHORIZATION_FAILED)
# One that connects only when it has something to ask rests for half a second before it asks; and it knows
# that it is at the end only once a fetch has found nothing.
_OWN = {"enable.sparse.connections": False, "fetch.wait.max.ms": 10}
_DEMANDED: Configuration = {
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}


class Cursor:
    """Reads committed records of a topic as they are; it joins no group and commits nothing.

        with Cursor("orders", settings) as cursor:
            cursor.start(from_time(yesterday))
            for message in cursor.read_to(cursor.ends()):
                print(message.key())

    `position` has the offset that comes next in each partition: it moves past records that were returned, and
    past what holds none, such as aborted transactions. After an error, `go_to(position)` goes on without a
    gap. `partitions` are all of them unless given. `group` is the name under which the broker knows it.
    With `archived`, what Kafka no longer has is read from the topic's archive.
    """

    def __init__(
        self,
        topic: str,
        settings: Settings,
        partitions: Iterable[int] | None = None,
        *,
        group: str = "penstock.cursor",
        kafka: Configuration | None = None,
        archived: bool = False,
    ) -> None:
        self.topic = topic
        self.position: dict[int, int] = {}
        self.listener = ErrorListener()
        demanded = {**(kafka or {}), **_DEMANDED, "group.id": group}
        with self._asking():
            own = configuration(settings, _OWN, demanded, self.listener)
            self.client = TieredClient(settings, own) if archived else confluent_kafka.Consumer(own)
        try:
            self._partitions = self._found(partitions)
        except BaseException:
            self.close()
            raise

    def start(self, at: Position | None = None) -> None:
        """Go to a place in every partition: the beginning unless given."""
        self.go_to(self.resolved(at or from_beginning()))

    def go_to(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions, and no others, from these offsets on."""
        self._assign(offsets)
        self.position = dict(offsets)

    def beginnings(self) -> dict[int, int]:
        """Return the first offset that each partition still has."""
        return self.resolved(from_beginning())

    def ends(self) -> dict[int, int]:
        """Return how far committed records can be read: up to the first transaction that is open."""
        return self.resolved(from_end())

    def resolved(self, at: Position) -> dict[int, int]:
        """Return the offsets that a position means now."""
        places = [self._place(partition) for partition in self._partitions]
        with self._asking():
            found = patiently(lambda: at.resolve(self.client, places))
        return {each.partition: each.offset for each in found}

    def look_again(self) -> list[int]:
        """Learn of partitions that were added meanwhile, and return all."""
        self._partitions = self._found(None)
        return self._partitions

    def read(self, size: int = 500, wait: float = _TICK) -> list[Received]:
        """Return the next messages; none if no more are there and none come in `wait` seconds."""
        with self._asking():
            found = self._fetched(size, wait)
            messages = [each for each in found if self._is_record(each)]
        for each in found:
            self._move_past(each)
        return messages

    def read_to(self, ends: Mapping[int, int]) -> Iterator[Received]:
        """Yield the messages up to an end of each partition; raise if none comes for too long."""
        for messages in self.chunks_to(ends):
            yield from messages

    def chunks_to(self, ends: Mapping[int, int], size: int = 500) -> Iterator[list[Received]]:
        """Yield lists of messages, some of them empty, each time that `position` has moved on, past them.

        Read to the end: whoever leaves before has partitions that are not read any more.
        """
        self._assign({each: at for each, at in self.position.items() if at < ends.get(each, 0)})
        heard_at = time.monotonic()
        while any(self.position[partition] < end for partition, end in ends.items()):
            before = dict(self.position)
            messages = self.read(size)
            self._stop_at(ends)
            if self.position != before:
                yield [each for each in messages if each.offset() < ends[each.partition()]]
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > TIMEOUT:
                raise self._stuck(ends)
        self._assign(self.position)

    def follow(self) -> Iterator[Received]:
        """Yield messages as they come, for ever."""
        while True:
            yield from self.read()

    def close(self) -> None:
        """Let go of the broker."""
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _asking(self) -> AbstractContextManager[None]:
        return asking(f"read {self.topic!r}", self.listener)

    def _found(self, partitions: Iterable[int] | None) -> list[int]:
        """Which partitions to read; those that are given are believed: a new topic may not be seen yet."""
        with self._asking():
            found = metadata(self.client, self.listener, self.topic).topics[self.topic]
        if partitions is not None:
            return list(partitions)
        if found.error is not None:
            raise explain(f"read {self.topic!r}", found.error, self.listener)
        return sorted(found.partitions)

    def _place(self, partition: int, offset: int = 0) -> TopicPartition:
        return TopicPartition(self.topic, partition, offset)

    def _fetched(self, size: int, wait: float) -> list[Message]:
        first = self.client.poll(wait)
        if first is None:
            self.listener.raise_refusal(f"read {self.topic!r}")
            return []
        more = self.client.consume(size - 1, timeout=0) if size > 1 else []
        return [first, *more]

    def _is_record(self, message: Message) -> TypeGuard[Received]:
        """Say whether a message is a record; raise for an error that does not go away by itself."""
        error = message.error()
        if error is None:
            return True
        partition = message.partition()
        if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:
            if self._is_there(partition):  # the error is of where it was before
                return False
            place = f"{self.topic}[{partition}]@{self.position[partition]}"
            raise LogError(
                f"can't read at {place}, where the log no longer is: {error.str()}",
                hint="records were deleted before they were read: start anew",
            )
        if error.code() not in _HARMLESS and not is_transient(error):
            raise explain(f"read {self.topic!r}", error, self.listener)
        return False

    def _is_there(self, partition: int) -> bool:
        """Whether Kafka, without its archives, has the place where a partition is read."""
        ask = confluent_kafka.Consumer.get_watermark_offsets
        first, end = ask(self.client, self._place(partition), timeout=TIMEOUT, cached=False)
        return bool(first <= self.position[partition] <= end)

    def _move_past(self, message: Message) -> None:
        error, partition, offset = message.error(), message.partition(), message.offset()
        if partition is None or offset is None:  # an error that is not of a place
            return
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            self.position[partition] = offset + (error is None)

    def _assign(self, offsets: Mapping[int, int]) -> None:
        with self._asking():
            self.client.assign([self._place(*each) for each in offsets.items()])

    def _stop_at(self, ends: Mapping[int, int]) -> None:
        """Read no further in partitions that have come to their end."""
        assigned = {each.partition for each in self.client.assignment()}
        done = {each: ends[each] for each in assigned if self.position[each] >= ends[each]}
        if done:
            self.client.incremental_unassign([self._place(each) for each in done])
            self.position.update(done)

    def _stuck(self, ends: Mapping[int, int]) -> LogError:
        return LogError(
            f"can't read {self.topic!r} to its end: nothing came in {TIMEOUT:.0f} s, and it stands at "
            f"{self.position} of {dict(ends)}",
            hint="is the broker up, or a transaction still open? try again",
        )
