"""WS /topics/{topic}: events pushed as they come, as many as the client has room for."""

import threading
from typing import Any

import anyio
from starlette.websockets import WebSocket

from penstock.gateway.consuming import answered
from penstock.gateway.declared import Declared
from penstock.gateway.limits import Limits
from penstock.gateway.readers import Lent, Readers
from penstock.gateway.refusal import Refusal
from penstock.gateway.session import Session
from penstock.gateway.start import BEGINNING, Start, refuse_unknown, whole, wrong
from penstock.gateway.window import Window

USUAL = 100
_SLICE = 0.25
_PATIENCE = 300.0  # seconds within which a client with a full window has to acknowledge something


class Pushing:
    """Pushes the events of a topic to clients that acknowledge them."""

    def __init__(
        self, declared: Declared, readers: Readers, limits: Limits, stopping: threading.Event
    ) -> None:
        self._declared, self._readers, self._limits, self._stopping = declared, readers, limits, stopping

    async def follow(self, socket: WebSocket) -> None:
        """Serve a connection until one of both sides ends it."""
        topic = self._declared.topic(socket.path_params["topic"])
        refuse_unknown(socket.query_params, *BEGINNING, "window")
        start, window = Start.of(socket.query_params), Window(self._size(socket))
        async with self._readers.lent(topic, start) as lent:
            session = Session(socket, self._stopping)
            await session.open()
            await session.send(answered([], lent))
            await session.run(lambda: _push(session, lent, window), lambda said: _heed(said, window))

    def _size(self, socket: WebSocket) -> int:
        asked = socket.query_params.get("window", str(min(USUAL, self._limits.window)))
        found = whole("window", asked, self._limits.window)
        if not found:
            raise wrong("window is 0", f"use 1 to {self._limits.window}")
        return found


async def _push(session: Session, lent: Lent, window: Window) -> None:
    """Read only what the client has room for: the rest stays in the log."""
    while True:
        room = await _room(window)
        events = await lent.read(room, _SLICE)
        if events:
            window.sent([len(bytes(each)) for each in events])
            await session.send(answered(events, lent))


async def _room(window: Window) -> int:
    with anyio.move_on_after(_PATIENCE):
        return await window.wait_for_room()
    message = f"nothing was acknowledged for {_PATIENCE:.0f} s"
    raise Refusal(408, "gateway.unacknowledged", message, hint='send {"ack": n} for n events')


def _heed(said: Any, window: Window) -> None:
    match said:
        case {"ack": int(count)} if not isinstance(count, bool) and window.acknowledge(count):
            return
    raise Refusal(
        400,
        "gateway.message",
        f"the message is {str(said)[:100]!r}",
        hint='send {"ack": n} for n events that were received and not acknowledged',
    )
