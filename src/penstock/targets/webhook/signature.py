"""Signatures of requests, as Standard Webhooks has them: HMAC-SHA256 of id, time and body."""

import base64
import binascii
import hmac
from collections.abc import Mapping
from datetime import timedelta

from penstock.durations import duration
from penstock.errors import DataError, SettingsError
from penstock.settings import Secret

ID, TIMESTAMP, SIGNATURE = "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"
_PREFIX = "whsec_"
_LONGEST_TIME = 15  # digits


def sign(secret: Secret, id: str, at: int, body: bytes) -> str:
    """Return the signature of a request that was made at a time.

    >>> sign(Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "msg", 1, b"{}")[:3]
    'v1,'
    """
    digest = hmac.digest(_key(secret), f"{id}.{at}.".encode() + body, "sha256")
    return "v1," + base64.b64encode(digest).decode()


def signature_headers(secret: Secret, id: str, at: int, body: bytes) -> dict[str, str]:
    """Return the headers that sign a request."""
    return {ID: id, TIMESTAMP: str(at), SIGNATURE: sign(secret, id, at, body)}


def verify_signature(
    secret: Secret,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    tolerance: str | timedelta = "5 minutes",
    names: tuple[str, str, str] = (ID, TIMESTAMP, SIGNATURE),
) -> str:
    """Return the id of a request that was signed with a secret not long ago; DataError for any other.

    `names` are the headers of id, time and signature, where a sender has others.
    """
    given = {name.lower(): value for name, value in headers.items()}
    id, at, found = (given.get(name.lower(), "") for name in names)
    is_time = at.isascii() and at.isdigit() and len(at) <= _LONGEST_TIME
    if not is_time or abs(now - int(at)) > duration(tolerance).total_seconds():
        raise DataError(f"the request is of the time {at[:50]!r}", hint="it is too old, or a clock is wrong")
    expected = sign(secret, id, int(at), body).encode()
    if not any(hmac.compare_digest(expected, each.encode()) for each in found.split(" ")):
        raise DataError("the request's signature is not right", hint="compare the secrets of both sides")
    return id


def _key(secret: Secret) -> bytes:
    """A secret of Standard Webhooks is base64 behind its prefix; any other is taken as it is."""
    if not secret.value.startswith(_PREFIX):
        return secret.value.encode()
    try:
        return base64.b64decode(secret.value.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise SettingsError(
            f"a webhook's secret begins with {_PREFIX} and is not base64", hint="copy it once more"
        ) from None
