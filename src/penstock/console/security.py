"""Who may use the console: as at the gateway, and what changes something has to come from its own page."""

import hmac
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Self

from starlette.types import Scope

from penstock.console.masking import Masks
from penstock.errors import SettingsError
from penstock.gateway.refusal import Refusal
from penstock.gateway.security import Security, checked_origins
from penstock.settings import Settings
from penstock.web import access
from penstock.web.access import is_loopback
from penstock.web.section import Section

KNOWN = ("token", "origins", "mask", "read_only")
CSRF = b"x-penstock-csrf"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_HINT = 'set PENSTOCK_CONSOLE_TOKEN, or token = { env = "…" } or { file = "…" } under [console]'


@dataclass(frozen=True)
class ConsoleSecurity(Security):
    """What lets a request in; one that may change something brings a token that only the page knows."""

    server: str = "console"
    challenge: str = "Basic"
    csrf: str = field(default_factory=lambda: token_urlsafe(32), repr=False)
    is_read_only: bool = False
    masks: Masks = field(default_factory=Masks)

    @classmethod
    def for_console(cls, settings: Settings, host: str, port: int, *, read_only: bool = False) -> Self:
        """The settings' token, origins and masks, and the origins of the address itself if it is loopback."""
        section = Section("console", settings.console, KNOWN)
        token = section.text("token")
        access.check_address("console", host, token, hint=_HINT)
        named = (each.strip() for each in (section.text("origins") or "").split(","))
        local = [f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        origins = checked_origins("console", named) | frozenset(local if is_loopback(host) else ())
        is_read_only = read_only or _is_true(section.text("read_only") or "false")
        masks = Masks.of(section.text("mask") or "")
        return cls(token, origins, is_read_only=is_read_only, masks=masks)

    def refusal(self, scope: Scope) -> Refusal | None:
        """Return why a request is not let in."""
        return super().refusal(scope) or self._forged(scope)

    def _may_be_linked(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:  # noqa: ARG002
        """The page may be opened from anywhere; what it asks for costs work, and is for itself only."""
        return not scope["path"].startswith("/api/")

    def _forged(self, scope: Scope) -> Refusal | None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            return None
        given = dict(scope["headers"]).get(CSRF, b"")
        if hmac.compare_digest(given, self.csrf.encode()):
            return None
        return Refusal(
            403,
            "console.csrf",
            "the request does not come from the console's page",
            hint="reload the page; programs use the command line",
        )

    def check_writable(self) -> None:
        """Refuse to change anything in read-only mode."""
        if self.is_read_only:
            raise Refusal(
                403, "console.read-only", "this console is read-only", hint="start it without --read-only"
            )


def _is_true(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise SettingsError(f"console.read_only is {text!r}, expected true or false")
    return text.lower() == "true"
