"""A crash at the worst moment: flows are held at a point of their batch, and everything is killed there."""

import threading
from collections.abc import Mapping

from penstock.testing.listener import PointListener


class Crash:
    """Holds each flow that is `armed` at its point; what is never armed goes on as if nobody listened."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: dict[str, str] = {}
        self._held: set[str] = set()
        self._listener = PointListener(self._decide)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that a process needs to be held."""
        return self._listener.environment

    def arm(self, points: Mapping[str, str]) -> None:
        """Hold flows, by their labels, when they come to their points."""
        with self._lock:
            self._armed, self._held = dict(points), set()

    def disarm(self) -> None:
        """Hold nobody any more; who is held stays so until it is killed."""
        self.arm({})

    @property
    def missing(self) -> set[str]:
        """The flows that have not come to their points yet."""
        with self._lock:
            return self._armed.keys() - self._held

    def close(self) -> None:
        self._listener.close()

    def _decide(self, point: str, subject: str) -> bool:
        with self._lock:
            is_there = self._armed.get(subject) == point
            if is_there:
                self._held.add(subject)
            return is_there
