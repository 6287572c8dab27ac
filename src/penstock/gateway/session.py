"""A WebSocket that something is pushed through until one of both sides ends it."""

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from penstock.errors import PenstockError
from penstock.gateway.refusal import Refusal
from penstock.gateway.security import TOKEN_PROTOCOL

PROTOCOL = "penstock"
POLICY, RESTART, TRY_AGAIN = 1008, 1012, 1013  # as RFC 6455 and IANA have them
_TICK = 0.25


class Session:
    """Pushes by one function, and hands what the client says to another."""

    def __init__(self, socket: WebSocket, stopping: threading.Event) -> None:
        self._socket, self._stopping = socket, stopping

    async def open(self) -> None:
        """Accept the connection, in the protocol that the client speaks."""
        offered = self._socket.scope.get("subprotocols", [])
        spoken = [each for each in offered if each == PROTOCOL or each.startswith(TOKEN_PROTOCOL)]
        await self._socket.accept(PROTOCOL if PROTOCOL in spoken else next(iter(spoken), None))

    async def send(self, content: Any) -> int:
        """Send a message, and return its size; a client that does not read holds the sender up."""
        text = msgspec.json.encode(content).decode()
        await self._socket.send_text(text)
        return len(text)

    async def run(self, push: Callable[[], Awaitable[None]], heed: Callable[[Any], None]) -> None:
        """Push and listen until the client, the server or an error ends it."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._listen, heed, group.cancel_scope)
                group.start_soon(self._watch, group.cancel_scope)
                await push()
        except* WebSocketDisconnect:
            pass  # there is nobody left
        except* (Refusal, PenstockError) as errors:
            await self._refuse(Refusal.of(_first(errors)))
        if self._stopping.is_set():
            await self._close(RESTART, "the gateway is being stopped")

    async def _listen(self, heed: Callable[[Any], None], scope: anyio.CancelScope) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                scope.cancel()
                return
            heed(_parsed(message.get("text")))

    async def _watch(self, scope: anyio.CancelScope) -> None:
        while not self._stopping.is_set():
            await anyio.sleep(_TICK)
        scope.cancel()

    async def _refuse(self, refusal: Refusal) -> None:
        """Say why, then close with a code that says whether to come back."""
        with suppress(WebSocketDisconnect, RuntimeError):
            await self.send({"error": refusal.content})
        await self._close(TRY_AGAIN if refusal.status in (429, 503) else POLICY, refusal.message)

    async def _close(self, code: int, reason: str) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):  # it may be gone meanwhile
            await self._socket.close(code, reason.encode()[:100].decode(errors="ignore"))


def _first(group: ExceptionGroup[Exception]) -> Exception:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, ExceptionGroup) else found


def _parsed(text: str | None) -> Any:
    try:
        return msgspec.json.decode(text or "")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise Refusal(400, "gateway.message", "the message is not JSON") from None
