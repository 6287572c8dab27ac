"""The gateway over HTTP: the application of what is declared, and the server that runs it."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from penstock.errors import PenstockError, SettingsError
from penstock.gateway.clients import Clients
from penstock.gateway.connections import bounded_protocol
from penstock.gateway.consuming import Consuming
from penstock.gateway.database import Databases
from penstock.gateway.declared import Declared
from penstock.gateway.guard import Guard
from penstock.gateway.health import Health
from penstock.gateway.limits import Limits
from penstock.gateway.openapi import document
from penstock.gateway.producing import KEY, REPEATED, Producing
from penstock.gateway.pushing import Pushing
from penstock.gateway.readers import Readers
from penstock.gateway.receiving import Receiving
from penstock.gateway.refusal import JsonResponse, Refusal, answer_refusal
from penstock.gateway.security import Security
from penstock.gateway.viewing import Viewing
from penstock.settings import Settings
from penstock.web.serving import StoppableServer, listening

_RESERVED = ("/topics", "/views", "/webhooks", "/openapi.json", "/health")
_GRACE_S = 30


class Gateway:
    """What is served: the routes, and the clients behind them, open while the application runs."""

    def __init__(self, declared: Declared, settings: Settings, limits: Limits) -> None:
        self.declared, self.settings, self.limits = declared, settings, limits
        self.clients = Clients(settings, limits.keys)
        self.readers = Readers(self.clients, limits.streams)
        self.databases = Databases(settings)
        self.stopping = threading.Event()
        self._document = document(declared, limits)

    def application(self, security: Security) -> Starlette:
        """Return the application, with the guard before all of its routes."""
        cors = Middleware(
            CORSMiddleware,
            allow_origins=sorted(security.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", KEY],
            expose_headers=["Retry-After", REPEATED],
        )
        guard = Middleware(Guard, security=security, limits=self.limits)
        handled = (Refusal, HTTPException, PenstockError, Exception)
        made = Starlette(
            routes=self._routes(security),
            middleware=[cors, guard] if security.origins else [guard],
            exception_handlers=dict.fromkeys(handled, answer_refusal),
            lifespan=self._lifespan,
        )
        made.router.redirect_slashes = False
        return made

    def _routes(self, security: Security) -> list[BaseRoute]:
        producing = Producing(self.declared, self.clients, self.limits.events)
        consuming = Consuming(self.declared, self.readers, self.limits, self.stopping)
        pushing = Pushing(self.declared, self.readers, self.limits, self.stopping)
        receiving = Receiving(self.declared, self.clients, producing, self.limits)
        viewing = Viewing(self.declared.views, self.databases, self.limits.streams, self.stopping)
        health = Health(self._check, security.knows)
        own = self.declared.own_routes(self.settings)
        for each in own:
            _check_path(each)
        return [
            Route("/health", health.get),
            Route("/openapi.json", self._openapi),
            Route("/topics/{topic}", producing.post, methods=["POST"]),
            Route("/topics/{topic}/events", consuming.get),
            WebSocketRoute("/topics/{topic}", pushing.follow),
            Route("/webhooks/{name}", receiving.post, methods=["POST"]),
            Route("/views/{view}", viewing.rows),
            Route("/views/{view}/{key:path}", viewing.row),
            WebSocketRoute("/views/{view}", viewing.follow),
            *own,
        ]

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        if any(self.declared.is_open(each) for each in self.declared.topics.values()):
            app.state.shards = self.clients.shards  # they end what a gateway that died has left open
        yield
        await self.databases.close()
        await run_in_threadpool(self.readers.close)
        await run_in_threadpool(self.clients.close)

    async def _openapi(self, _: Request) -> Response:
        return JsonResponse(self._document)

    async def _check(self) -> None:
        """Raise if the broker, or a database of the views, does not answer."""
        await run_in_threadpool(self.clients.broker.partitions, [])
        for view in self.declared.views.values():
            await self.databases.check(view.table)


def serve(
    declared: Declared,
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve what is declared until the process is asked to stop; requests that are at work end first.

    `ready` is called with the address once it can be connected to.
    """
    limits = Limits.of(settings)
    Security.of(settings, host, port)  # before anything listens
    with listening("gateway", host, port) as listener:
        port = listener.getsockname()[1]
        security = Security.of(settings, host, port)
        gateway = Gateway(declared, settings, limits)
        config = uvicorn.Config(
            gateway.application(security),
            http=bounded_protocol(limits.connections),
            log_level="warning",
            proxy_headers=False,
            server_header=False,
            ws_per_message_deflate=False,
            ws_max_size=65_536,
            timeout_graceful_shutdown=_GRACE_S,
        )
        ready(f"http://{host}:{port}")
        StoppableServer(config, gateway.stopping).run([listener])


def _check_path(route: BaseRoute) -> None:
    path = getattr(route, "path", "")
    if not path.startswith("/") or path == "/" or path.startswith(_RESERVED):
        raise SettingsError(
            f"gateway_routes has a route at {path!r}",
            hint=f"{', '.join(_RESERVED)} are the gateway's own: use another path",
        )
