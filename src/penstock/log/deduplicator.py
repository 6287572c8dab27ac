"""Duplicates: results that were re-emitted after a crash are known by their id, and left out."""

from confluent_kafka import TopicPartition

from penstock.events import Event
from penstock.log.message import Received


class Deduplicator:
    """Remembers the ids of the last `memory` events of each partition.

    A reader that starts in mid-log has seen nothing: it goes back and reads what is to be remembered, without
    handing it out.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._seen: dict[int, dict[str, None]] = {}
        self._resume: dict[int, int] = {}

    def rewind(self, place: TopicPartition, first: int) -> TopicPartition:
        """Return the place to read from, so that duplicates of earlier events are known."""
        self._resume[place.partition] = place.offset
        self._seen[place.partition] = {}
        return TopicPartition(place.topic, place.partition, max(first, place.offset - self._memory))

    def resume_from(self, place: TopicPartition) -> int:
        """Return where handing out goes on after reading went back: never at what is only remembered."""
        return max(int(place.offset), self._resume.get(place.partition, 0))

    def is_old(self, message: Received) -> bool:
        """Say whether a message was read only to be remembered."""
        return message.offset() < self._resume.get(message.partition(), 0)

    def is_duplicate(self, message: Received, event: Event | None) -> bool:
        """Say whether an event is to be left out; from now on it is known."""
        if event is None:
            return self.is_old(message)
        seen = self._seen.setdefault(message.partition(), {})
        known = event.id in seen
        seen[event.id] = None
        if len(seen) > self._memory:
            del seen[next(iter(seen))]
        return known or self.is_old(message)
