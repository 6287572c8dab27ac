"""The lab in the console: its page, its files, its routes, and the frames of what runs."""

import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from penstock.console.extension import Files, Page
from penstock.console.pages import page_files
from penstock.console.security import ConsoleSecurity
from penstock.console.turns import Turns
from penstock.documents import JsonObject
from penstock.errors import PenstockError
from penstock.gateway.refusal import JsonResponse, Refusal
from penstock.gateway.session import Session
from penstock.lab import asked
from penstock.lab.experiment import Experiment
from penstock.lab.frames import Frames
from penstock.lab.laboratory import Laboratory

_log = logging.getLogger("penstock")
_ICON = "M9 3h6M10 3v6l-5 9a2 2 0 0 0 2 3h10a2 2 0 0 0 2-3l-5-9V3M7.5 14h9"
PAGE = Page("lab", "Lab", "l", _ICON, "/static/lab/lab.js")
Answer = Callable[[Request], Awaitable[Response]]


class LabSite:
    """Shows a laboratory in the console; what starts, stops or steers is refused if it is read-only."""

    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        self._frames = Frames(laboratory.frame)
        self._turns = Turns("starts and stops", 1)

    @property
    def page(self) -> Page:
        """The page in the console's navigation."""
        return PAGE

    @property
    def files(self) -> Files:
        """The page's modules and styles, and a module for the picture of each experiment."""
        return page_files("penstock.lab")

    def routes(self, security: ConsoleSecurity, stopping: threading.Event) -> Sequence[BaseRoute]:
        """What there is to see and to do."""
        doings = {"start": self._start, "stop": self._stop, "change": self._change, "press": self._press}
        return [
            Route("/api/lab/experiments", self._experiments),
            WebSocketRoute("/api/lab/live", self._push(stopping)),
            *(
                Route(f"/api/lab/{name}", _checked(security, do), methods=["POST"])
                for name, do in doings.items()
            ),
        ]

    def running(self) -> AbstractAsyncContextManager[None]:
        """Make frames; at the end, end what runs and wait until it has cleaned up."""
        return self._running()

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._frames.run)
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await run_in_threadpool(self._stop_at_the_end)
                group.cancel_scope.cancel()

    def _stop_at_the_end(self) -> None:
        """Whatever hinders it, the console ends, too."""
        try:
            self._laboratory.stop()
        except PenstockError as error:
            _log.warning("%s", error)

    async def _experiments(self, _: Request) -> Response:
        found = [described(each) for each in self._laboratory.experiments.values()]
        return JsonResponse({"experiments": found})

    async def _start(self, request: Request) -> Response:
        given = asked.body(await request.body(), "experiment", "values")
        name, values = asked.text(given, "experiment"), asked.values(given)
        await self._turns.run(lambda: self._laboratory.start(name, values))
        return JsonResponse({})

    async def _stop(self, request: Request) -> Response:
        asked.body(await request.body())
        await self._turns.run(self._laboratory.stop)
        return JsonResponse({})

    async def _change(self, request: Request) -> Response:
        given = asked.body(await request.body(), "experiment", "values")
        self._laboratory.change(asked.text(given, "experiment"), asked.values(given))
        return JsonResponse({})

    async def _press(self, request: Request) -> Response:
        given = asked.body(await request.body(), "experiment", "button")
        self._laboratory.press(asked.text(given, "experiment"), asked.text(given, "button"))
        return JsonResponse({})

    def _push(self, stopping: threading.Event) -> Callable[[WebSocket], Awaitable[None]]:
        async def follow(socket: WebSocket) -> None:
            session = Session(socket, stopping)
            with self._frames.watching():
                await session.open()
                await session.run(lambda: self._send(socket), _heed)

        return follow

    async def _send(self, socket: WebSocket) -> None:
        """A browser that is slow misses frames, and always gets the newest."""
        if self._frames.text:
            await socket.send_text(self._frames.text)
        while True:
            await socket.send_text(await self._frames.next())


def described(experiment: Experiment) -> JsonObject:
    """Return what the page shows of an experiment before it runs."""
    names = ("id", "title", "question", "watch", "explained", "code", "page", "seconds", "services")
    return {name: getattr(experiment, name) for name in names} | {
        "controls": [asdict(each) for each in experiment.controls]
    }


def _checked(security: ConsoleSecurity, do: Answer) -> Answer:
    async def answer(request: Request) -> Response:
        security.check_writable()
        return await do(request)

    return answer


def _heed(said: Any) -> None:
    raise Refusal(400, "lab.message", f"the message is {str(said)[:100]!r}", hint="there is nothing to say")
