"""WS /api/tail: the events of a topic as they come; a browser gets no more than a person can read."""

import threading
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from penstock.console.decoding import Decoding
from penstock.console.search import Decode
from penstock.documents import JsonObject
from penstock.gateway.refusal import Refusal
from penstock.gateway.session import Session
from penstock.log.cursor import Cursor
from penstock.settings import Settings

_MOST = 10  # tails at once, of all browsers
_CHUNK, _SHOWN = 500, 50  # records that are read at once, and how many of them are sent
_BEHIND = 2_000  # records behind which the tail jumps to the end
_PAUSE = 0.25


class Tailing:
    """Follows topics for browsers; what is left out is counted."""

    def __init__(self, settings: Settings, decoding: Decoding, stopping: threading.Event) -> None:
        self._settings, self._decoding, self._stopping = settings, decoding, stopping
        self._places = anyio.CapacityLimiter(_MOST)

    async def follow(self, socket: WebSocket) -> None:
        """Serve a browser until one of both sides ends it."""
        topic = socket.query_params.get("name", "")
        try:
            self._places.acquire_on_behalf_of_nowait(socket)
        except anyio.WouldBlock:
            raise Refusal.busy(f"{_MOST} topics are being followed already") from None
        cursor = None
        try:
            decode = await run_in_threadpool(self._decoding.decoder, topic)
            cursor = await run_in_threadpool(self._opened, topic)
            session = Session(socket, self._stopping)
            await session.open()
            await session.run(lambda: _push(session, cursor, decode), _heed)
        finally:
            self._places.release_on_behalf_of(socket)
            if cursor is not None:
                with anyio.CancelScope(shield=True):
                    await run_in_threadpool(cursor.close)

    def _opened(self, topic: str) -> Cursor:
        cursor = Cursor(topic, self._settings, kafka={"fetch.wait.max.ms": 500})
        cursor.go_to(cursor.ends())
        return cursor


async def _push(session: Session, cursor: Cursor, decode: Decode) -> None:
    await session.send({"events": [], "skipped": 0})
    while True:
        found = await run_in_threadpool(_chunk, cursor, decode)
        if found["events"]:
            await session.send(found)
            await anyio.sleep(_PAUSE)


def _chunk(cursor: Cursor, decode: Decode) -> JsonObject:
    """The next events, the last ones of many; behind too many, those that are left out are counted."""
    messages = cursor.read(_CHUNK, wait=0.5)
    skipped = max(0, len(messages) - _SHOWN)
    if len(messages) == _CHUNK:
        ends = cursor.ends()
        behind = sum(max(0, end - cursor.position[each]) for each, end in ends.items())
        if behind > _BEHIND:
            cursor.go_to(ends)
            skipped += behind
    return {"events": [decode(each) for each in messages[-_SHOWN:]], "skipped": skipped}


def _heed(said: Any) -> None:
    message = f"the message is {str(said)[:100]!r}"
    raise Refusal(400, "console.message", message, hint="there is nothing to say")
