"""Who may use the gateway: programs on this machine, pages of known origins, or whoever has the token."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from starlette.types import Scope

from penstock.errors import SettingsError
from penstock.gateway.limits import KNOWN
from penstock.gateway.refusal import Refusal
from penstock.settings import Settings
from penstock.web import access
from penstock.web.access import bears_token, host_of, is_loopback
from penstock.web.section import Section

_HINT = 'set PENSTOCK_GATEWAY_TOKEN, or token = { env = "…" } or { file = "…" } under [gateway]'
_ALONE = ("host", "origin", "authorization", "content-type", "content-length", "idempotency-key")
_LENGTHS = {b"content-length", b"transfer-encoding"}
OPEN = ("/health",)  # says nothing but whether it works
SIGNED = "/webhooks/"  # a signature lets in there
_OWN_SITES = (b"same-origin", b"none")  # a page of ours, or a person who typed the address
TOKEN_PROTOCOL = "penstock.token."  # noqa: S105 - what a page's WebSocket may bring in place of a header


@dataclass(frozen=True)
class Security:
    """What lets a request in.

    With a token, everybody brings it; without one, only this machine is served, by the names it has for
    itself, so that no page of a stranger can reach it by a name of its own. Pages come from `origins` only,
    to the letter. `challenge` is how the token is asked for: browsers know what Basic means.
    """

    token: str | None = field(default=None, repr=False)
    origins: frozenset[str] = frozenset()
    server: str = "gateway"
    challenge: str = "Bearer"

    @classmethod
    def of(cls, settings: Settings, host: str, port: int) -> Self:
        """The settings' token and origins, and the origins of the address itself if it is loopback."""
        section = Section("gateway", settings.gateway, KNOWN)
        token = section.text("token")
        access.check_address("gateway", host, token, hint=_HINT)
        named = (each.strip() for each in (section.text("origins") or "").split(","))
        local = [f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        return cls(token, checked_origins("gateway", named) | frozenset(local if is_loopback(host) else ()))

    def refusal(self, scope: Scope) -> Refusal | None:
        """Return why a request is not let in."""
        headers = dict(scope["headers"])
        ambiguous = repeated_header(scope, _ALONE) or _two_ends(headers)
        return ambiguous or self._foreign(headers) or self._embedded(scope, headers) or self._stranger(scope)

    def knows(self, scope: Scope) -> bool:
        """Whether a request comes from one of us: it brings the token, if there is one."""
        headers = dict(scope["headers"])
        return self.token is None or bears_token(_with_protocol(scope, headers), self.token.encode())

    def _foreign(self, headers: dict[bytes, bytes]) -> Refusal | None:
        host, origin = headers.get(b"host", b"").decode("latin-1"), headers.get(b"origin")
        if self.token is None and not is_loopback(host_of(f"//{host}")):
            return Refusal(
                421,
                f"{self.server}.host",
                f"this {self.server} is not {host[:100]!r}",
                hint="without a token, it serves 127.0.0.1, localhost and [::1]",
            )
        if origin is not None and origin.decode("latin-1") not in self.origins:
            seen = origin.decode("latin-1")[:100]
            hint = f'name it, with scheme and port: origins = "https://…" under [{self.server}]'
            message = f"pages of {seen!r} may not use the {self.server}"
            return Refusal(403, f"{self.server}.origin", message, hint=hint)
        return None

    def _embedded(self, scope: Scope, headers: dict[bytes, bytes]) -> Refusal | None:
        """What a page of another site embeds, such as an image, a browser asks for without an origin."""
        site = headers.get(b"sec-fetch-site", b"none")
        if site in _OWN_SITES or b"origin" in headers or self._may_be_linked(scope, headers):
            return None
        message = f"pages of other sites may not use the {self.server}"
        return Refusal(403, f"{self.server}.site", message, hint="open its own page")

    def _may_be_linked(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:  # noqa: ARG002
        """Whether it is a link somewhere else that was followed."""
        return headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"

    def _stranger(self, scope: Scope) -> Refusal | None:
        path = scope["path"]
        if path in OPEN or path.startswith(SIGNED) or self.knows(scope):
            return None
        return Refusal(
            401,
            f"{self.server}.token",
            f"the {self.server} wants its token",
            hint="send the header Authorization: Bearer …",
            headers={"WWW-Authenticate": f'{self.challenge} realm="penstock"'},
        )


def checked_origins(server: str, origins: Iterable[str]) -> frozenset[str]:
    """Return the origins that settings name; what is none is refused."""
    found = frozenset(each for each in origins if each)
    for each in found:
        if not each.startswith(("http://", "https://")) or each.count("/") != 2 or not host_of(each):
            raise SettingsError(
                f"{server}.origins has {each!r}", hint="write scheme, host and port: https://shop.example"
            )
    return found


def repeated_header(scope: Scope, alone: Iterable[str]) -> Refusal | None:
    """Refuse headers that decide something and come twice: what is in front may have heeded the other one."""
    names = Counter(name.decode("latin-1") for name, _ in scope["headers"])
    twice = next((name for name in alone if names[name.lower()] > 1), None)
    if twice is None:
        return None
    return Refusal(400, "gateway.header", f"the header {twice!r} comes twice", hint="send one")


def _two_ends(headers: dict[bytes, bytes]) -> Refusal | None:
    """A body that has two ends: what is in front may have taken the rest for another request."""
    if not headers.keys() >= _LENGTHS:
        return None
    message = "the body has a length and comes in chunks, too"
    hint = "send Content-Length or Transfer-Encoding"
    return Refusal(400, "gateway.header", message, hint=hint, headers={"Connection": "close"})


def _with_protocol(scope: Scope, headers: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """A page can give its WebSocket no header: it offers the token as a protocol."""
    for each in scope.get("subprotocols", ()):
        if each.startswith(TOKEN_PROTOCOL):
            token = each.removeprefix(TOKEN_PROTOCOL).encode()
            return {b"authorization": b"Bearer " + token, **headers}
    return headers
