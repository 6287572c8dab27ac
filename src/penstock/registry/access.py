"""Who may use the registry's server: anybody on this machine, or whoever has the token."""

import binascii
import hmac
from base64 import b64decode
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.errors import SettingsError

UNAUTHORIZED, FORBIDDEN = 40101, 40301
_HINT = 'set PENSTOCK_REGISTRY_TOKEN, or token = { env = "…" } or { file = "…" } under [registry]'


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_address(host: str, token: str | None) -> None:
    """Refuse to serve strangers without a token."""
    if token is not None and not token.strip():
        raise SettingsError("the registry's token is empty", hint=_HINT)
    if token is None and not is_loopback(host):
        raise SettingsError(
            f"the registry would listen on {host!r} without a token, for anybody to use", hint=_HINT
        )


class Access:
    """Lets requests through that bring the token, as a bearer or as the password of basic authentication.

    Without a token, requests that a browser sends for somebody else's page are refused.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(dict(scope["headers"])) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: dict[bytes, bytes]) -> JSONResponse | None:
        if self._token is None:
            origin = headers.get(b"origin", b"").decode("latin-1")
            return _foreign(origin) if origin and not is_loopback(_host(origin)) else None
        given = _token_in(headers.get(b"authorization", b""))
        return None if hmac.compare_digest(given, self._token) else _unauthorized()


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _token_in(header: bytes) -> bytes:
    scheme, _, value = header.partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    if scheme.lower() != b"basic":
        return b""
    try:
        return b64decode(value.strip(), validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""


def _unauthorized() -> JSONResponse:
    message = "the registry wants its token, as a bearer or as the password of basic authentication"
    wanted = {"WWW-Authenticate": 'Basic realm="penstock"'}
    return JSONResponse({"error_code": UNAUTHORIZED, "message": message}, 401, headers=wanted)


def _foreign(origin: str) -> JSONResponse:
    message = f"without a token, pages of {origin[:100]!r} may not use the registry"
    return JSONResponse({"error_code": FORBIDDEN, "message": message}, 403)
