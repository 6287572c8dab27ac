"""Turns: so much costly work is done at once, some more waits, and what is beyond that is refused."""

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import to_thread

from penstock.gateway.refusal import Refusal

T = TypeVar("T")
_WAITING = 20


class Turns:
    """Does work in threads; what waits for its turn holds none of those that others need."""

    def __init__(self, what: str, at_once: int) -> None:
        self._what, self._most, self._asked = what, at_once + _WAITING, 0
        self._limiter = anyio.CapacityLimiter(at_once)

    async def run(self, work: Callable[[], T]) -> T:
        """Return what the work comes to, when it is its turn."""
        if self._asked >= self._most:
            raise Refusal.busy(f"{self._asked} {self._what} are at work or wait already")
        self._asked += 1
        try:
            return await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._asked -= 1
