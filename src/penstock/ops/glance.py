"""A glance at records in many partitions at once: the first ones from an offset on."""

import time
from collections.abc import Mapping
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from penstock.log.client import Configuration, ErrorListener, asking, configuration, is_transient, metadata
from penstock.log.message import Received, is_received
from penstock.ops.topic_statuses import Partition
from penstock.settings import Settings

_PATIENCE = 5.0  # seconds for all partitions
_SMALL = 64 * 1024  # bytes of a partition at once: one batch comes whole, whatever its size
_DEMANDED: Configuration = {
    "group.id": "penstock.status",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "enable.sparse.connections": False,
    "fetch.wait.max.ms": 10,
    "max.partition.fetch.bytes": _SMALL,
    "queued.min.messages": 1,
    "fetch.queue.backoff.ms": 1,
}


class Glance:
    """Reads a few records of many partitions, in no group; what nobody answers is left out.

    A partition ends where the first open transaction begins, unless records that are not `committed` count.
    """

    def __init__(self, settings: Settings, *, committed: bool = True) -> None:
        self._listener = ErrorListener()
        demanded = {**_DEMANDED, "isolation.level": "read_committed" if committed else "read_uncommitted"}
        with asking("make a consumer"):
            self._client = Consumer(configuration(settings, {}, demanded, self._listener))
        with asking("list topics", self._listener):
            metadata(self._client, self._listener)  # one that is not connected rests before it asks

    def records(self, starts: Mapping[Partition, int], most: int = 1) -> dict[Partition, list[Received]]:
        """Return up to so many records of each partition from an offset on; none if it ends there."""
        found: dict[Partition, list[Received]] = {}
        waiting = set(starts)
        self._client.assign([TopicPartition(*place, offset) for place, offset in starts.items()])
        deadline = time.monotonic() + _PATIENCE
        while waiting and time.monotonic() < deadline:
            for message in self._client.consume(1000, timeout=0.05):
                place = (message.topic() or "", message.partition() or 0)
                if place in waiting and _is_done(message, found.setdefault(place, []), most):
                    waiting.remove(place)
                    if _is_refused(message):
                        del found[place]
        self._client.unassign()
        return {place: each for place, each in found.items() if place not in waiting or each}

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_done(message: Message, found: list[Received], most: int) -> bool:
    """Take a record in, and say whether there are enough, or no more."""
    if is_received(message):
        found.append(message)
        return len(found) >= most
    error = message.error()
    return error is not None and not is_transient(error)


def _is_refused(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() != KafkaError._PARTITION_EOF
