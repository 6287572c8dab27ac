"""Follows a topic of results while a demo runs."""

import threading
import time
from collections import deque
from types import TracebackType
from typing import Generic, Self, TypeVar

from penstock.errors import PenstockError
from penstock.events import Event
from penstock.log import Consumer, Topic
from penstock.settings import Settings

E = TypeVar("E", bound=Event)


class Follower(Generic[E]):
    """Reads a topic from its beginning in a thread of its own; the topic has to be there.

    With `keep`, only so many of the last results are kept.
    """

    def __init__(self, topic: Topic[E], settings: Settings, keep: int | None = None) -> None:
        self._topic, self._settings = topic, settings
        self._heard: deque[tuple[float, E]] = deque(maxlen=keep)
        self._failure: PenstockError | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=topic.name, daemon=True)

    def heard(self) -> list[tuple[float, E]]:
        """Return all results so far, each with when it was heard, in seconds since 1970."""
        if self._failure is not None:
            raise self._failure
        return [*self._heard.copy()]  # a deque that grows can't be gone through

    def recent(self, count: int = 1) -> list[tuple[float, E]]:
        """Return the last results: quickly, however many there are."""
        return [self._heard[place] for place in range(-min(count, len(self._heard)), 0)]

    def events(self) -> list[E]:
        """Return all results so far."""
        return [event for _, event in self.heard()]

    def __len__(self) -> int:
        return len(self._heard)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        try:
            with Consumer(self._topic, self._settings) as consumer:
                while not self._over.is_set():
                    for record in consumer.records(idle="100 ms"):
                        if record.event is not None:
                            self._heard.append((time.time(), record.event))
        except PenstockError as error:
            self._failure = error
