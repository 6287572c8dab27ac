"""An endpoint: where requests go, and what lets them in; all of it is fixed by declaration."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from penstock.errors import SettingsError, TargetError
from penstock.settings import Secret, Settings, reveal

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[\t\x20-\x7e]{0,4000}")
_OWN = re.compile(
    r"(?i)idempotency-key|webhook-.*|penstock-.*|content-.*|host|connection|transfer-encoding|expect|upgrade"
)
_KNOWN = ("url", "token", "secret", "ca")


@dataclass(frozen=True)
class Endpoint:
    """An address with what lets requests in; Spark carries it to the executors, and no text shows it.

    `name` is what errors call it. `secret` signs requests, `ca` is a file of certificates to be trusted
    instead of the system's.
    """

    name: str
    url: Secret
    headers: Mapping[str, Secret] = field(default_factory=dict)
    secret: Secret | None = None
    ca: str | None = None

    @property
    def address(self) -> SplitResult:
        return urlsplit(self.url.value)

    @property
    def path(self) -> str:
        parts = self.address
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def redacted(self, text: str) -> str:
        """Return a text without what lets requests in: an endpoint may echo it."""
        secrets = (*self.headers.values(), self.secret, self.url, Secret(self.path))
        hidden = [value.value for value in secrets if value is not None]
        words = {part for value in hidden for part in (value, value.removeprefix("Bearer ")) if len(part) > 3}
        for word in sorted(words, key=len, reverse=True):
            text = text.replace(word, "***")
        return text


def check_url(url: str, what: str) -> str:
    """Return an address that requests may go to; one that is refused is not shown: it may hold secrets."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise TargetError(f"{what} is not an address", hint="write https://host/path") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TargetError(f"{what} is no address of http or https", hint="write https://host/path")
    if "@" in parts.netloc:
        raise TargetError(f"{what} holds credentials", hint="put them in the connection: token = { env = … }")
    if parts.fragment or port == 0 or not re.fullmatch(r"[\x21-\x7e]+", url):
        raise TargetError(
            f"{what} has a fragment, a port 0 or a character that is not plain ASCII",
            hint="write such characters as %XX, and names of hosts in punycode",
        )
    return url


def check_headers(headers: Mapping[str, str], what: str) -> None:
    """Refuse headers that are none, or that are ours."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or _OWN.fullmatch(name):
            raise TargetError(
                f"{what} can't send a header {name!r}", hint="it is no name, or Penstock sets it"
            )
        if not _VALUE.fullmatch(value):
            raise TargetError(f"{what} can't send its value of {name!r}", hint="use plain ASCII in one line")


def resolved(
    settings: Settings, connection: str | None, url: str | None, headers: Mapping[str, str]
) -> Endpoint:
    """Return the endpoint that a connection and an address name together."""
    found = {name: reveal(value) for name, value in _connection(settings, connection).items()}
    name = f"connection {connection!r}" if connection else _shown(url or "")
    unknown = [each for each in found if each not in _KNOWN and not each.startswith("header.")]
    if unknown:
        known = f"{', '.join(_KNOWN)} and header.NAME"
        raise SettingsError(f"{name} has a setting {unknown[0]!r}", hint=f"a webhook's has {known}")
    if (url is None) == ("url" not in found):
        wrong = "has no url" if url is None else "has a url, and so has the webhook"
        raise SettingsError(f"{name} {wrong}", hint="give the address in one of the two")
    theirs = {each.removeprefix("header."): value for each, value in found.items() if "header." in each}
    if "token" in found:
        theirs["Authorization"] = f"Bearer {found['token']}"
    check_headers(theirs, name)
    every = {each: Secret(value) for each, value in {**headers, **theirs}.items()}
    secret = Secret(found["secret"]) if found.get("secret") else None
    return Endpoint(
        name, Secret(check_url(url or found["url"], f"url of {name}")), every, secret, found.get("ca")
    )


def _connection(settings: Settings, name: str | None) -> Mapping[str, str | Secret]:
    return settings.connection(name) if name is not None else {}


def _shown(url: str) -> str:
    """An address without its path, which may hold what lets one in."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
