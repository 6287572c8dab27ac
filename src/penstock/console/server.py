"""The console over HTTP: the page, what it asks for, and the server that runs it."""

import getpass
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from penstock.console import details, schemas
from penstock.console.actions import Actions
from penstock.console.capture_tables import capture_tables
from penstock.console.decoding import Decoding
from penstock.console.event_form import closed_because, event_form
from penstock.console.examination import FRESH, Examination, presented
from penstock.console.extension import Extension
from penstock.console.live import Live
from penstock.console.masking import audited
from penstock.console.pages import page_files
from penstock.console.search import Search, search
from penstock.console.security import HEADERS, ConsoleSecurity
from penstock.console.sized_look import SizedLook
from penstock.console.tailing import Tailing
from penstock.console.turns import Turns
from penstock.console.viewing import ViewReader
from penstock.console.work import Work
from penstock.control.audit import last_lines
from penstock.control.declared_pipeline import DeclaredPipelines
from penstock.documents import JsonObject
from penstock.errors import ConfigurationError, PenstockError
from penstock.gateway import Declared, Limits
from penstock.gateway.connections import bounded_protocol
from penstock.gateway.guard import Guard
from penstock.gateway.refusal import JsonResponse, Refusal
from penstock.gateway.session import Session
from penstock.ops.collecting import collecting
from penstock.ops.doctor.declared import Declared as DeclaredToDoctor
from penstock.ops.doctor.probing import examine
from penstock.ops.model import System
from penstock.settings import Settings
from penstock.web import strict_json
from penstock.web.serving import StoppableServer, listening

PORT = 9480
LIMITS = Limits(body=256 * 1024, rate=200, burst=600, requests=300, connections=400)
_EXAMINATIONS, _SEARCHES, _ACTIONS = 2, 4, 8  # at once, of all browsers
_FRAME = 4096  # bytes that a browser may say at once: it has nothing to say
_GRACE_S = 5


@dataclass(frozen=True)
class Watched:
    """What the console looks at: functions, so that tests can give it a system of their own."""

    look: Callable[[], System]
    examine: Callable[[], Any]
    declared: Declared = field(default_factory=Declared)
    to_doctor: DeclaredToDoctor = field(default_factory=DeclaredToDoctor)
    pipelines: DeclaredPipelines = field(default_factory=DeclaredPipelines)


class Console:
    """What is served: the page's files, its questions, and its actions; and what extensions add to them."""

    def __init__(
        self,
        settings: Settings,
        watched: Watched,
        security: ConsoleSecurity,
        extensions: Sequence[Extension] = (),
    ) -> None:
        self._settings, self._watched, self._security = settings, watched, security
        self._extensions = tuple(extensions)
        self.stopping = threading.Event()
        self._files = page_files() | {
            f"{each.page.path}/{name}": file for each in extensions for name, file in each.files.items()
        }
        self._decoding = Decoding(settings, watched.declared, security.masks)
        self._examination = Examination(watched.examine, security.masks)
        self._work = Work(settings, watched.pipelines, security.masks)
        self._live = Live(watched.look, self._examination.recent, security.masks, work=self._work.document)
        self._views = ViewReader(settings, watched.declared.views, security.masks)
        self._examinations = Turns("examinations", _EXAMINATIONS)
        self._searches = Turns("searches", _SEARCHES)
        self._acting = Turns("actions", _ACTIONS)
        self._actions = Actions(
            settings,
            security,
            watched.declared,
            watched.to_doctor,
            self._decoding,
            self._examination,
            watched.pipelines,
        )

    def application(self) -> Starlette:
        """Return the application, with the guard before all of its routes."""
        guard = Middleware(Guard, security=self._security, limits=LIMITS)
        handled = (Refusal, HTTPException, PenstockError, Exception)
        made = Starlette(
            routes=self._routes(),
            middleware=[Middleware(_SafeHeaders), guard],
            exception_handlers=dict.fromkeys(handled, _answer_refusal),
            lifespan=self._lifespan,
        )
        made.router.redirect_slashes = False
        return made

    def _routes(self) -> list[BaseRoute]:
        tailing = Tailing(self._settings, self._decoding, self.stopping)
        return [
            Route("/", self._page),
            Route("/static/{name:path}", self._file),
            Route("/api/session", self._session),
            WebSocketRoute("/api/live", self._push),
            WebSocketRoute("/api/tail", tailing.follow),
            Route("/api/topic", self._topic),
            Route("/api/events", self._events),
            Route("/api/group", self._detail(details.group_details)),
            Route("/api/flow", self._flow),
            Route("/api/capture", self._detail(details.capture_details)),
            Route("/api/capture-tables", self._capture_tables),
            Route("/api/subjects", self._subjects),
            Route("/api/subject", self._subject),
            Route("/api/views", self._view_names),
            Route("/api/view", self._view),
            Route("/api/doctor", self._doctor),
            Route("/api/audit", self._audit),
            Route("/api/command", self._command),
            Route("/api/actions", self._act, methods=["POST"]),
            *(each for made in self._extensions for each in made.routes(self._security, self.stopping)),
        ]

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._live.run)
            async with AsyncExitStack() as stack:
                for each in self._extensions:
                    await stack.enter_async_context(each.running())
                yield
            group.cancel_scope.cancel()
        await self._views.close()
        await run_in_threadpool(self._decoding.close)

    async def _page(self, _: Request) -> Response:
        content, kind = self._files["index.html"]
        return Response(content, media_type=kind)

    async def _file(self, request: Request) -> Response:
        found = self._files.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404, "there is no such file")
        return Response(found[0], headers={"Content-Type": found[1]})

    async def _session(self, _: Request) -> Response:
        """What the page has to know first; no page of another origin can read it."""
        return JsonResponse({
            "csrf": self._security.csrf,
            "read_only": self._security.is_read_only,
            "version": version("penstock"),
            "user": getpass.getuser(),
            "masks": len(self._security.masks.rules),
            "views": sorted(self._watched.declared.views),
            "pages": [each.page.described() for each in self._extensions],
        })  # fmt: skip

    async def _push(self, socket: WebSocket) -> None:
        """Send every snapshot; a browser that is slow misses some, and always gets the newest."""
        session = Session(socket, self.stopping)
        with self._live.watching():
            await session.open()
            await session.run(lambda: self._snapshots(socket), _heed)

    async def _snapshots(self, socket: WebSocket) -> None:
        await socket.send_text(msgspec.json.encode({"history": self._live.trends.history()}).decode())
        if self._live.text:
            await socket.send_text(self._live.text)
        while True:
            await socket.send_text(await self._live.next())

    async def _topic(self, request: Request) -> Response:
        name = _name(request)
        found = details.topic_details(await self._live.recent(), name)
        declared = self._watched.declared
        return JsonResponse(
            found | {"form": event_form(declared, name), "closed": closed_because(declared, name)}
        )

    async def _events(self, request: Request) -> Response:
        asked = Search.of(_name(request), request.query_params)
        if asked.key is not None and self._security.masks.hides_key(asked.topic):
            raise Refusal(403, "console.masked", "keys of this topic are masked, and can't be looked for")
        return JsonResponse(await self._searches.run(lambda: self._searched(asked)))

    def _searched(self, asked: Search) -> JsonObject:
        return search(asked, self._settings, self._decoding.decoder(asked.topic)).document

    def _detail(self, made: Callable[[System, str], JsonObject]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return JsonResponse(made(await self._live.recent(), _name(request)))

        return answer

    async def _flow(self, request: Request) -> Response:
        generation = request.query_params.get("generation", "")
        number = int(generation) if generation.isascii() and generation.isdigit() else None
        return JsonResponse(details.flow_details(await self._live.recent(), _name(request), number))

    async def _capture_tables(self, request: Request) -> Response:
        found = details.capture_details(await self._live.recent(), _name(request))
        tables = await run_in_threadpool(capture_tables, self._settings, found["capture"])
        return JsonResponse({"tables": tables})

    async def _subjects(self, _: Request) -> Response:
        return JsonResponse(
            {"subjects": await run_in_threadpool(lambda: schemas.subjects(self._decoding.registry()))}
        )

    async def _subject(self, request: Request) -> Response:
        registry = await run_in_threadpool(self._decoding.registry)
        if registry is None:
            raise HTTPException(404, "there is no registry yet")
        return JsonResponse(await run_in_threadpool(schemas.subject_details, registry, _name(request)))

    async def _view_names(self, _: Request) -> Response:
        return JsonResponse({"views": self._views.described()})

    async def _view(self, request: Request) -> Response:
        return JsonResponse(await self._views.rows(_name(request), request.query_params))

    async def _doctor(self, request: Request) -> Response:
        if request.query_params.get("known") == "1":  # what is seen without an examination
            system = await self._live.recent()
            return JsonResponse({"at": system.at, "findings": presented(self._live.findings)})
        since = time.monotonic() - (0 if request.query_params.get("anew") == "1" else FRESH)
        return JsonResponse(await self._examinations.run(lambda: self._examination.document(since)))

    async def _audit(self, _: Request) -> Response:
        lines = await run_in_threadpool(last_lines, self._settings.data)
        return JsonResponse({"lines": audited(lines, self._security.masks)})

    async def _command(self, request: Request) -> Response:
        return JsonResponse(await run_in_threadpool(self._work.command, _name(request)))

    async def _act(self, request: Request) -> Response:
        try:
            asked = strict_json.parse(await request.body())
        except ValueError as error:
            raise Refusal(400, "console.json", f"the body is not valid JSON: {error}") from None
        user = f"{getpass.getuser()} (console)"
        return JsonResponse(await self._acting.run(lambda: self._actions.answer(asked, user)))


class _SafeHeaders:
    """Adds the headers by which a browser guards the page, to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, guarded)


def serve(
    settings: Settings,
    declared: Declared,
    to_doctor: DeclaredToDoctor,
    pipelines: DeclaredPipelines,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    read_only: bool = False,
    ready: Callable[[str], None] = lambda _: None,
    extensions: Sequence[Extension] = (),
) -> None:
    """Serve the console until the process is asked to stop.

    `ready` is called with the address once it can be connected to.
    """
    ConsoleSecurity.for_console(settings, host, port)  # before anything listens
    with listening("console", host, port) as listener, collecting(settings) as collector:
        port = listener.getsockname()[1]
        security = ConsoleSecurity.for_console(settings, host, port, read_only=read_only)
        look = SizedLook(collector.look, settings)
        watched = Watched(look, lambda: examine(settings, to_doctor), declared, to_doctor, pipelines)
        console = Console(settings, watched, security, extensions)
        config = server_config(console.application())
        ready(f"http://{host}:{port}")
        StoppableServer(config, console.stopping).run([listener])


def server_config(app: ASGIApp) -> uvicorn.Config:
    """Return how the application is served."""
    return uvicorn.Config(
        app,
        http=bounded_protocol(LIMITS.connections),
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        ws_per_message_deflate=False,
        ws_max_size=_FRAME,
        timeout_graceful_shutdown=_GRACE_S,
    )


async def _answer_refusal(_: HTTPConnection, error: Exception) -> Response:
    match error:
        case ConfigurationError():  # of what was asked for, not of the console
            return Refusal(409, error.id, error.message, hint=error.hint).response
        case Refusal() | PenstockError():
            return Refusal.of(error).response
        case HTTPException():
            return Refusal(error.status_code, "console.http", error.detail).response
    return Refusal(500, "internal", "the console failed", hint="see its log").response


def _name(request: Request) -> str:
    found = request.query_params.get("name", "")
    if not found:
        raise Refusal(400, "console.query", "the request names nothing", hint="send name=…")
    return found


def _heed(said: Any) -> None:
    raise Refusal(400, "console.message", f"the message is {str(said)[:100]!r}")
