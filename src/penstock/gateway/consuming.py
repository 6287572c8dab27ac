"""GET /topics/{topic}/events: events from an offset on, waiting for those to come."""

import threading
import time
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.gateway.declared import Declared
from penstock.gateway.limits import Limits
from penstock.gateway.readers import Lent, Readers
from penstock.gateway.refusal import JsonResponse
from penstock.gateway.start import BEGINNING, Start, refuse_unknown, whole, wrong

USUAL, MOST = 100, 1_000  # events of an answer
_SLICE = 0.25  # seconds between two looks at whether anybody still waits


class Consuming:
    """Answers with the events behind a place, and where to go on."""

    def __init__(
        self, declared: Declared, readers: Readers, limits: Limits, stopping: threading.Event
    ) -> None:
        self._declared, self._readers, self._stopping = declared, readers, stopping
        self._longest = round(limits.wait.total_seconds())

    async def get(self, request: Request) -> Response:
        """Answer a long poll."""
        topic = self._declared.topic(request.path_params["topic"])
        asked = request.query_params
        refuse_unknown(asked, *BEGINNING, "limit", "wait")
        start, most = Start.of(asked), _limit(asked)
        until = time.monotonic() + whole("wait", asked.get("wait", "0"), self._longest)
        async with self._readers.lent(topic, start) as lent:
            events = await self._events(request, lent, most, until)
            return JsonResponse(answered(events, lent))

    async def _events(self, request: Request, lent: Lent, most: int, until: float) -> list[msgspec.Raw]:
        """Wait for the first events; what is there at once is looked for in any case."""
        found = await lent.read(most, _SLICE)
        while not found and time.monotonic() < until and not self._stopping.is_set():
            if await request.is_disconnected():
                break
            found = await lent.read(most, min(_SLICE, max(0.01, until - time.monotonic())))
        return found


def answered(events: list[msgspec.Raw], lent: Lent) -> dict[str, object]:
    """Events as a client gets them, with where to go on."""
    return {"events": events, "next": lent.reader.next}


def _limit(asked: Mapping[str, str]) -> int:
    found = whole("limit", asked.get("limit", str(USUAL)), MOST)
    if not found:
        raise wrong("limit is 0", f"use 1 to {MOST}")
    return found
