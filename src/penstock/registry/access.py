"""Who may use the registry's server: anybody on this machine, or whoever has the token."""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.web import access
from penstock.web.access import Headers, bears_token, host_of, is_loopback

UNAUTHORIZED, FORBIDDEN = 40101, 40301
_HINT = 'set PENSTOCK_REGISTRY_TOKEN, or token = { env = "…" } or { file = "…" } under [registry]'


def check_address(host: str, token: str | None) -> None:
    """Refuse to serve strangers without a token."""
    access.check_address("registry", host, token, hint=_HINT)


class Access:
    """Lets requests through that bring the token, as a bearer or as the password of basic authentication.

    Without a token, requests that a browser sends for somebody else's page are refused, and so are those by a
    name that is not this machine's own: a page may give its name the address of loopback.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(dict(scope["headers"])) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: dict[bytes, bytes]) -> JSONResponse | None:
        if self._token is None:
            return _refused_here(headers)
        return None if bears_token(headers, self._token) else _unauthorized()


def _refused_here(headers: Headers) -> JSONResponse | None:
    origin, host = (headers.get(name, b"").decode("latin-1") for name in (b"origin", b"host"))
    if origin and not is_loopback(host_of(origin)):
        return _refused(f"without a token, pages of {origin[:100]!r} may not use the registry", 403)
    if host and not is_loopback(host_of(f"//{host}")):
        hint = "without a token, it is served as 127.0.0.1, localhost and [::1]"
        return _refused(f"this is not the registry of {host[:100]!r}; {hint}", 421)
    return None


def _unauthorized() -> JSONResponse:
    message = "the registry wants its token, as a bearer or as the password of basic authentication"
    wanted = {"WWW-Authenticate": 'Basic realm="penstock"'}
    return JSONResponse({"error_code": UNAUTHORIZED, "message": message}, 401, headers=wanted)


def _refused(message: str, status: int) -> JSONResponse:
    return JSONResponse({"error_code": FORBIDDEN, "message": message}, status)
