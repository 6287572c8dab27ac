"""The metrics over HTTP: looked at when they are asked for, once for whoever asks at the same time."""

import threading
import time
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from penstock.ops.collecting import collecting
from penstock.ops.exposition import CONTENT_TYPE, exposition
from penstock.ops.metrics import metrics
from penstock.ops.model import System
from penstock.settings import Settings
from penstock.web.access import bears_token, check_address, host_of, is_loopback
from penstock.web.section import Section

PORT = 9477
_FRESH = 2.0  # seconds for which a look is good
_HINT = "set token in penstock.toml [metrics] or PENSTOCK_METRICS_TOKEN, or listen on 127.0.0.1"


class RecentLook:
    """The last look at a system, if it is fresh; or else a new one, which all who ask wait for."""

    def __init__(self, look: Callable[[], System], fresh: float = _FRESH) -> None:
        self._look, self._fresh = look, fresh
        self._lock = threading.Lock()
        self._found: tuple[float, System] | None = None

    def __call__(self) -> System:
        with self._lock:
            if self._found is None or time.monotonic() - self._found[0] > self._fresh:
                system = self._look()
                self._found = time.monotonic(), system
            return self._found[1]


def application(look: Callable[[], System], token: str | None = None) -> Starlette:
    """Return the application; without a token it must not be served but on loopback."""
    recent = RecentLook(look)

    def shown(request: Request) -> Response:  # in a thread, as Starlette runs what is not async
        refused = _stranger(request, token)
        if refused is not None:
            return refused
        return Response(exposition(metrics(recent())), headers={"Content-Type": CONTENT_TYPE})

    return Starlette(routes=[Route("/metrics", shown)])


def _stranger(request: Request, token: str | None) -> Response | None:
    """Refuse who does not bring the token; without one, a page that comes by a name of its own."""
    host = request.headers.get("host", "")
    if token is None and not is_loopback(host_of(f"//{host}")):
        hint = "without a token, they are served as 127.0.0.1, localhost and [::1]"
        return PlainTextResponse(f"these are not the metrics of {host[:100]!r}; {hint}\n", 421)
    if token is not None and not bears_token(dict(request.headers.raw), token.encode()):
        wanted = {"WWW-Authenticate": 'Basic realm="penstock"'}
        return PlainTextResponse("the metrics want their token\n", 401, headers=wanted)
    return None


def checked_token(settings: Settings, host: str) -> str | None:
    """Return the token of the settings; without one, only this machine is served."""
    token = Section("metrics", settings.metrics, ("token",)).text("token")
    check_address("metrics endpoint", host, token, hint=_HINT)
    return token


def serve(settings: Settings, *, host: str = "127.0.0.1", port: int = PORT) -> None:
    """Serve the metrics of a system until the process is asked to stop; strangers only with a token."""
    token = checked_token(settings, host)
    with collecting(settings) as collector:
        uvicorn.run(application(collector.look, token), host=host, port=port, log_level="warning")
