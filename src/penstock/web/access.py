"""Who may use a server: anybody on this machine, or whoever has its token."""

import binascii
import hmac
from base64 import b64decode
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from penstock.errors import SettingsError

Headers = Mapping[bytes, bytes]  # by their names in small letters


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_address(server: str, host: str, token: str | None, *, hint: str) -> None:
    """Refuse to serve strangers without a token."""
    if token is not None and not token.strip():
        raise SettingsError(f"the {server}'s token is empty", hint=hint)
    if token is None and not is_loopback(host):
        raise SettingsError(
            f"the {server} would listen on {host!r} without a token, for anybody to use", hint=hint
        )


def host_of(address: str) -> str:
    """Return the host of an address such as a page's origin; an empty text if it has none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def bears_token(headers: Headers, token: bytes) -> bool:
    """Whether a request brings the token, as a bearer or as the password of basic authentication."""
    return hmac.compare_digest(_token_in(headers.get(b"authorization", b"")), token)


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
