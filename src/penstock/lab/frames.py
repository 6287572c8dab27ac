"""Frames: what the running experiment shows, made once for all browsers, at most eight times a second."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import msgspec
from starlette.concurrency import run_in_threadpool

from penstock.documents import JsonObject

_EVERY = 1 / 8


class Frames:
    """The last frame as JSON; frames are made while somebody watches, and sent on if they are new."""

    def __init__(self, made: Callable[[], JsonObject], every: float = _EVERY) -> None:
        self._made, self._every = made, every
        self.text = ""
        self._watchers = 0
        self._wanted, self._changed = anyio.Event(), anyio.Event()

    async def run(self) -> None:
        """Make frames for ever, with rests while nobody watches."""
        while True:
            await self._wanted.wait()
            text = await run_in_threadpool(self._encoded)
            if text != self.text:
                self.text = text
                changed, self._changed = self._changed, anyio.Event()
                changed.set()
            await anyio.sleep(self._every)
            if not self._watchers:
                self.text, self._wanted = "", anyio.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Make frames, as long as a browser is open."""
        self._watchers += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._watchers -= 1

    async def next(self) -> str:
        """Wait for the next frame, and return it."""
        await self._changed.wait()
        return self.text

    def _encoded(self) -> str:
        return msgspec.json.encode(self._made()).decode()
