"""Refusals: what a request is answered with that can't be done, as JSON with an id, a message and a hint."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from penstock.errors import BufferFullError, ConfigurationError, DataError, PenstockError, TryAgainError

_LONGEST = 2_000
_IDS = {404: "gateway.unknown-path", 405: "gateway.method"}


class JsonResponse(Response):
    """An answer in JSON, with decimals and times as events have them."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else msgspec.json.encode(content)


class Refusal(Exception):
    """A request that is not answered as it was asked: the status, a stable id, and what to do."""

    def __init__(
        self,
        status: int,
        id: str,
        message: str,
        *,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.id, self.message, self.hint = status, id, message, hint
        self.details, self.headers = dict(details or {}), dict(headers or {})

    @classmethod
    def of(cls, error: Exception) -> Self:
        """Return the refusal that an error comes to; only what is nobody's input is the server's fault."""
        match error:
            case cls():
                return error
            case HTTPException(status_code=status, detail=detail):
                id = _IDS.get(status, "gateway.http")
                return cls(status, id, detail, headers=error.headers)
            case BufferFullError():
                return cls.busy(error.message)
            case TryAgainError():
                return cls(503, error.id, error.message, hint=error.hint, headers={"Retry-After": "1"})
            case DataError():
                return cls(422, error.id, error.message, hint=error.hint)
            case ConfigurationError():
                return cls(503, error.id, error.message, hint=error.hint)
            case PenstockError():
                return cls(409, error.id, error.message, hint=error.hint)
        return cls(500, "internal", "the gateway failed", hint="see its log")

    @classmethod
    def busy(cls, message: str, seconds: float = 1.0) -> Self:
        """Return the refusal of more than can be done now."""
        after = str(max(1, round(seconds + 0.5)))
        hint = f"wait {after} s, then try again"
        return cls(429, "gateway.too-many", message, hint=hint, headers={"Retry-After": after})

    @property
    def content(self) -> dict[str, Any]:
        """What the client is shown."""
        shown = {"id": self.id, "message": _safe(self.message), "hint": _safe(self.hint), **self.details}
        return {name: value for name, value in shown.items() if value is not None}

    @property
    def response(self) -> Response:
        return JsonResponse(self.content, self.status, headers=self.headers)


async def answer_refusal(_: HTTPConnection, error: Exception) -> Response:
    """Answer a request with what has gone wrong."""
    return Refusal.of(error).response


def _safe(text: str | None) -> str | None:
    """A text that JSON can hold, whatever a stranger has put into it."""
    return None if text is None else text[:_LONGEST].encode(errors="backslashreplace").decode()
