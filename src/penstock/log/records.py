"""What comes out of the log: events with the place they were found at."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Generic, TypeVar

from penstock.events import Event
from penstock.log.message import Received

E = TypeVar("E", bound=Event)


class Placed:
    """What a message says about itself besides its event: where it stands in the log, key and headers."""

    __slots__ = ("_message",)

    def __init__(self, message: Received) -> None:
        self._message = message

    @property
    def topic(self) -> str:
        return self._message.topic()

    @property
    def partition(self) -> int:
        return self._message.partition()

    @property
    def offset(self) -> int:
        return self._message.offset()

    @property
    def key(self) -> bytes | None:
        return self._message.key()

    @property
    def written(self) -> datetime:
        """When the event was written to the log; when it happened is in the event."""
        return datetime.fromtimestamp(self._message.timestamp()[1] / 1000, UTC)

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        return self._message.headers() or []


class Record(Placed, Generic[E]):
    """An event and its place in the log; `event` is None for a table's tombstone."""

    __slots__ = ("event",)

    def __init__(self, event: E | None, message: Received) -> None:
        super().__init__(message)
        self.event = event

    def __repr__(self) -> str:
        return f"Record({self.topic}[{self.partition}]@{self.offset}, {self.event!r})"


class Batch(Generic[E]):
    """Some events of a topic, in the order of each partition: iterate for records, or take `events`."""

    __slots__ = ("_messages", "dead", "events")

    def __init__(self, events: list[E | None], messages: list[Received], dead: int) -> None:
        self.events = events
        self.dead = dead
        self._messages = messages

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Record[E]]:
        for event, message in zip(self.events, self._messages, strict=True):
            yield Record(event, message)
