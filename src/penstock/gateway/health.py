"""GET /health: whether the gateway and what is behind it work, for anybody who asks."""

import time
from collections.abc import Awaitable, Callable

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from penstock.errors import PenstockError
from penstock.gateway.refusal import JsonResponse, Refusal

_KEEP_S = 1.0
_WORKS = JsonResponse({"status": "ok"})
_FAILS = Refusal(
    503,
    "gateway.unhealthy",
    "something behind the gateway does not answer",
    hint="ask with the token to hear what it is",
    headers={"Retry-After": "1"},
).response


class Health:
    """Asks the services behind the gateway once for all who ask at about the same time.

    Strangers may ask: it costs the services nothing, and why something fails is for those whom `knows` knows.
    """

    def __init__(self, check: Callable[[], Awaitable[None]], knows: Callable[[Scope], bool]) -> None:
        self._check, self._knows = check, knows
        self._checking = anyio.Lock()
        self._failure: Refusal | None = None
        self._until = 0.0  # the monotonic time up to which that holds

    async def get(self, request: Request) -> Response:
        """Answer whether everything works."""
        failure = await self._found()
        if failure is None:
            return _WORKS
        return failure.response if self._knows(request.scope) else _FAILS

    async def _found(self) -> Refusal | None:
        async with self._checking:
            if time.monotonic() >= self._until:
                self._failure = await self._asked()
                self._until = time.monotonic() + _KEEP_S
            return self._failure

    async def _asked(self) -> Refusal | None:
        try:
            await self._check()
        except (Refusal, PenstockError) as error:
            return Refusal.of(error)
        return None
