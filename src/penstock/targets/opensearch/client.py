"""Requests to an OpenSearch server: JSON over HTTP, tried again while it is busy or away."""

import base64
import http.client
import random
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Self
from urllib.parse import quote, urlsplit

import msgspec

from penstock.documents import Json, JsonObject
from penstock.errors import SettingsError, SinkError
from penstock.settings import Secret, Settings, reveal

WAITS = (0.1, 0.3, 1.0, 3.0, 8.0)  # seconds between tries, less or more by a half
_SECONDS = 60
BUSY = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


@dataclass(frozen=True)
class Server:
    """Where a server is, and as whom one asks it; no address is ever in an error."""

    url: Secret
    user: Secret | None = None
    password: Secret | None = None

    @classmethod
    def of(cls, settings: Settings, connection: str) -> Self:
        """Return the server that a connection names."""
        found = settings.connection(connection)
        parts = urlsplit(reveal(found.get("url", "")))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise SettingsError(
                f"connection {connection!r} has no url of a server",
                hint='write url = "https://host:9200", and user and password beside it',
            )
        given = {name: Secret(reveal(found[name])) for name in ("user", "password") if name in found}
        return cls(Secret(reveal(found["url"])), **given)

    def headers(self) -> dict[str, str]:
        if self.user is None:
            return {}
        pair = f"{self.user.value}:{self.password.value if self.password else ''}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


@dataclass(frozen=True)
class Answer:
    """What a server has answered."""

    status: int
    body: bytes

    def json(self) -> Json:
        return msgspec.json.decode(self.body)

    @property
    def ok(self) -> bool:
        return self.status < HTTPStatus.BAD_REQUEST

    @property
    def error(self) -> str:
        """The kind of an error, as the server names it."""
        try:
            found = self.json().get("error")
        except (msgspec.DecodeError, AttributeError):
            return ""
        return str(found.get("type", "")) if isinstance(found, dict) else str(found)


class Client:
    """A connection to a server, made when it is first needed, and made again when it was lost."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: JsonObject | None = None) -> Answer:
        """Ask something of JSON."""
        content = None if body is None else msgspec.json.encode(body)
        return self.send(method, path, content, "application/json")

    def need(self, method: str, path: str, body: JsonObject | None = None) -> Json:
        """Ask something that can only be refused by mistake."""
        answer = self.ask(method, path, body)
        if not answer.ok:
            raise refused(method, path, answer)
        return answer.json()

    def send(self, method: str, path: str, content: bytes | None, kind: str) -> Answer:
        """Send a request; try again while the server is busy or away."""
        problem = ""
        for pause in (*WAITS, None):
            try:
                answer = self._once(method, path, content, kind)
                if answer.status not in BUSY:
                    return answer
                problem = f"it answers {answer.status} {answer.error}"
            except (OSError, http.client.HTTPException) as error:
                self.close()
                problem = f"{type(error).__name__}: {error}"
            if pause is not None:
                wait(pause)
        raise SinkError(
            f"OpenSearch did not answer {method} /{path.partition('?')[0]}: {problem}",
            hint="check that it runs, and the connection's url; it is tried again",
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _once(self, method: str, path: str, content: bytes | None, kind: str) -> Answer:
        parts = urlsplit(self._server.url.value)
        self._connection = self._connection or _connect(parts.scheme, parts.hostname or "", parts.port)
        headers = {"Content-Type": kind, **self._server.headers()}
        self._connection.request(method, f"{parts.path.rstrip('/')}/{path}", content, headers)
        found = self._connection.getresponse()
        return Answer(found.status, found.read())


def refused(method: str, path: str, answer: Answer) -> SinkError:
    """Return the error for a request that was refused."""
    said = answer.body[:300].decode(errors="replace")
    return SinkError(
        f"OpenSearch refused {method} /{path.partition('?')[0]}: {answer.status} {said}",
        hint="compare the connection's user and its rights with what the flow writes",
    )


def path_of(*parts: str) -> str:
    """Return a path of names that may hold any sign."""
    return "/".join(quote(each, safe="") for each in parts)


def lines(objects: Iterable[bytes]) -> bytes:
    """Return objects as a body of one a line."""
    return b"\n".join(objects) + b"\n"


def wait(seconds: float) -> None:
    """Wait about that long: writers that were refused together should not come back together."""
    time.sleep(seconds * random.uniform(0.5, 1.5))  # noqa: S311 (nobody has to guess it)


def _connect(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
    return http.client.HTTPConnection(host, port, timeout=_SECONDS)
