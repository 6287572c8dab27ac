"""The guard before every route: who comes in, how fast, how many at once, and how much they bring."""

import time

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.gateway.limits import Limits
from penstock.gateway.rate import TokenBuckets
from penstock.gateway.refusal import Refusal
from penstock.gateway.security import Security

_BODY_S = 30.0  # within which a body has to be there


class Guard:
    """Refuses what is not to reach the application, and bounds the bodies of what does."""

    def __init__(self, app: ASGIApp, security: Security, limits: Limits) -> None:
        self._app, self._security, self._limits = app, security, limits
        self._buckets = TokenBuckets(limits.rate, limits.burst)
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal.response(scope, receive, send)
            return
        self._at_work += 1
        try:
            await self._app(scope, _Body(scope, receive, self._limits.body), send)
        finally:
            self._at_work -= 1

    def _refusal(self, scope: Scope) -> Refusal | None:
        client = scope["client"][0] if scope.get("client") else ""
        seconds = self._buckets.wait(client, time.monotonic())
        if seconds:
            message = f"more than {self._limits.rate} requests a second from {client}"
            return Refusal.busy(message, seconds)
        if self._at_work >= self._limits.requests:
            return Refusal.busy(f"{self._at_work} requests are being worked on")
        return self._security.refusal(scope) or _too_large(scope, self._limits.body)


class _Body:
    """Receives a body that must not be larger, or take longer, than it may."""

    def __init__(self, scope: Scope, receive: Receive, most: int) -> None:
        self._receive, self._most, self._size = receive, most, 0
        self._is_whole = scope["type"] != "http"
        self._deadline = time.monotonic() + _BODY_S

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()
        with anyio.move_on_after(self._deadline - time.monotonic()) as scope:
            message = await self._receive()
        if scope.cancelled_caught:
            raise Refusal(
                408, "gateway.body", f"the body did not come in {_BODY_S:.0f} s", hint="send it anew"
            )
        self._is_whole = not message.get("more_body", False)
        self._size += len(message.get("body", b""))
        if self._size > self._most:
            raise _larger(self._most)
        return message


def _too_large(scope: Scope, most: int) -> Refusal | None:
    given = dict(scope["headers"]).get(b"content-length", b"0")
    return _larger(most) if given.isdigit() and int(given[:20]) > most else None


def _larger(most: int) -> Refusal:
    return Refusal(
        413,
        "gateway.body",
        f"the body is larger than {most} bytes",
        hint="send fewer events at once",
        headers={"Connection": "close"},
    )
