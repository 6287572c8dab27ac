"""Clients of Redis that try nothing twice by themselves, and its errors in our words, without the address."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from penstock.errors import (
    AuthenticationError,
    AuthorizationError,
    PenstockError,
    SettingsError,
    SetupError,
    SinkError,
    TargetError,
)
from penstock.settings import Secret

Client = Any  # a redis.Redis, whose methods are typed as if each might have to be awaited

_CONNECT_TIMEOUT = 10.0
_TRANSIENT = (
    "BUSY",
    "LOADING",
    "MISCONF",
    "NOREPLICAS",
    "MASTERDOWN",
    "TRYAGAIN",
    "CLUSTERDOWN",
    "UNKILLABLE",
)
_AGAIN = "the batch is written again"
_OWN = ("decode_responses", "encoding", "encoding_errors", "retry_on_timeout", "protocol")


def connect(address: Secret, timeout: float = 60.0) -> Client:
    """Return a client that gives up after a timeout; whether what it asked was done is for the caller to see.

    A client that repeats a request by itself might repeat it behind the back of a later one.
    """
    package = _package()
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    own = {"retry": Retry(NoBackoff(), 0), "protocol": 2}
    limits = {"socket_timeout": timeout, "socket_connect_timeout": _CONNECT_TIMEOUT}
    try:
        return package.Redis.from_url(_without_own(address.value), **own, **limits)
    except (ValueError, TypeError):
        raise SettingsError(
            "the address of Redis can't be parsed",
            hint="write it as redis://:password@host:6379/0, rediss://… or unix://…, with special characters "
            "as %XX",
        ) from None


def _without_own(url: str) -> str:
    """Leave out what an address might say of how answers are to be read: that is decided here."""
    parts = urlsplit(url)
    options = [(name, value) for name, value in parse_qsl(parts.query) if name not in _OWN]
    return urlunsplit(parts._replace(query=urlencode(options)))


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Turn Redis's errors into ours: what was asked, what it answered, what to do."""
    errors = _package().exceptions
    try:
        yield
    except errors.RedisError as error:
        raise explain(what, error) from None
    except (OSError, UnicodeError) as error:  # as from a name that no server has
        raise SinkError(f"Redis did not {what}: {_line(error)}", hint=_AGAIN) from None


def explain(what: str, error: Exception) -> PenstockError:
    """Return our error for one of Redis's, sorted by what the reader can do about it."""
    errors = _package().exceptions
    text = f"Redis did not {what}: {_line(error)}"
    match error:
        case errors.AuthenticationError():
            return AuthenticationError(text, hint="check user and password in the connection's url")
        case errors.NoPermissionError() | errors.AuthorizationError():
            return AuthorizationError(text, hint="the user needs scripts, and its prefix and penstock:* keys")
        case errors.OutOfMemoryError():
            return SinkError(text, hint="raise maxmemory or remove keys; the batch is written again")
        case errors.ReadOnlyError():
            return SinkError(text, hint="the address leads to a replica: name the primary; " + _AGAIN)
        case errors.MovedError() | errors.AskError() | errors.ClusterCrossSlotError():
            return TargetError(text, hint="Redis Cluster is not supported: use a single primary")
        case errors.ConnectionError() | errors.TimeoutError():
            return SinkError(text, hint=f"check that it runs, and the connection's url; {_AGAIN}")
    if str(error).startswith(_TRANSIENT):
        return SinkError(text, hint=_AGAIN)
    if str(error).startswith("WRONGTYPE"):
        return TargetError(
            text, hint="a key below the prefix is of another kind: remove it, or use another prefix"
        )
    return TargetError(text, hint="the batch was not written down as done")


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _package() -> ModuleType:
    try:
        import redis
    except ModuleNotFoundError:
        raise SetupError("the package redis is not installed", hint="pip install 'penstock[redis]'") from None
    return redis
