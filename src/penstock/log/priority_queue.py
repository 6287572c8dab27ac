"""Queues by priority: the events of several topics, the most urgent topic's first, and none starves."""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from types import TracebackType
from typing import Generic, Self, TypeVar

from penstock.durations import duration
from penstock.errors import ConfigurationError, TopicError
from penstock.events import Event
from penstock.log.client import Configuration
from penstock.log.lease import Lease
from penstock.log.queue import Queue
from penstock.log.topic import Topic
from penstock.schemas import SchemaDirectory
from penstock.settings import Settings

E = TypeVar("E", bound=Event)
_OWN: Configuration = {"fetch.wait.max.ms": 50}
_SOON = 0.25  # the share of a lease after which a topic is asked what its client holds


class PriorityQueue(Generic[E]):
    """Hands out the events of several topics, as `Queue` does, those of the first topic before all others.

        with PriorityQueue((urgent, normal, bulk), settings, group="resize") as queue:
            for lease in queue.take():
                work(lease.event)
                lease.acknowledge()

    No topic starves: one that was not asked in `turn` takes is asked first, whatever the work takes. So is
    one that had nothing a quarter of the lease ago: its client may have asked on, and hold an event.
    `patience` is how long a topic has to answer before the next one is asked, a little more than the broker
    takes. `limit`, `lease` and the dead letters are as in `Queue`, for each topic. What a worker holds is not
    taken from it: an urgent event waits until some worker is done with what it took.
    """

    def __init__(
        self,
        topics: Sequence[Topic[E]],
        settings: Settings,
        *,
        group: str,
        turn: int = 10,
        patience: str | timedelta = "10 ms",
        limit: int = 5,
        lease: str | timedelta = "30 seconds",
        at_once: int = 1,
        schemas: SchemaDirectory | None = None,
        kafka: Configuration | None = None,
    ) -> None:
        _check(topics, turn)
        self._turn, self._takes = turn, 0
        self._patience = duration(patience).total_seconds()
        self._soon = duration(lease).total_seconds() * _SOON
        self._asked = {topic.name: (0, time.monotonic()) for topic in topics}  # at which take, and when
        self._closed = False
        with ExitStack() as opened:
            self._queues = [
                opened.enter_context(
                    Queue(
                        topic,
                        settings,
                        group=group,
                        limit=limit,
                        lease=lease,
                        at_once=at_once,
                        schemas=schemas,
                        kafka={**_OWN, **(kafka or {})},
                    )
                )
                for topic in topics
            ]
            self._open = opened.pop_all()

    def take(self, *, idle: str | timedelta | None = None) -> Iterator[Lease[E]]:
        """Yield leases for ever; with `idle`, end when nothing has come for that long."""
        patience = duration(idle).total_seconds() if idle is not None else None
        quiet_since = time.monotonic()
        while not self._closed:
            found = yield from self._look()
            if found or not all(queue.joined for queue in self._queues):
                quiet_since = time.monotonic()
            elif patience is not None and time.monotonic() - quiet_since >= patience:
                return

    def close(self) -> None:
        """Release what is held and leave the group."""
        self._closed = True
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._open.__exit__(kind, error, trace)

    def _look(self) -> Generator[Lease[E], None, bool]:
        """Hand out what the first topic has that has anything; say whether one had."""
        for queue in self._order():
            self._asked[queue.topic.name] = (self._takes, time.monotonic())
            if (yield from queue.poll(self._patience)):
                self._takes += 1
                return True
        return False

    def _order(self) -> list[Queue[E]]:
        """The topics by priority, but those first that have not been asked for too long."""
        due = sorted(filter(self._is_due, self._queues), key=lambda queue: self._asked[queue.topic.name])
        return [*due, *(queue for queue in self._queues if queue not in due)]

    def _is_due(self, queue: Queue[E]) -> bool:
        takes, at = self._asked[queue.topic.name]
        return self._takes - takes >= self._turn or (queue.is_asking and time.monotonic() - at > self._soon)


def _check(topics: Sequence[Topic[E]], turn: int) -> None:
    if len({topic.name for topic in topics}) < max(2, len(topics)):
        raise TopicError(
            f"a priority queue has {len(topics)} topics, expected two or more different ones",
            hint="name the most urgent topic first",
        )
    if turn < 2:
        raise ConfigurationError(f"turn is {turn}, expected 2 takes or more")
