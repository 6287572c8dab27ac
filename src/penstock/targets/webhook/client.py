"""The client of a lane: it posts requests over one kept connection, and says what came of each."""

import select
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any

from penstock.durations import duration
from penstock.errors import SettingsError
from penstock.targets.webhook.bounded import BoundedResponse
from penstock.targets.webhook.endpoint import Endpoint
from penstock.targets.webhook.event import Request
from penstock.targets.webhook.retries import retry_after
from penstock.targets.webhook.signature import signature_headers

_DRAINED = 64 * 1024  # bytes of an answer that are read so that its connection can be kept
SHOWN = 2_000  # characters of an answer that a dead letter keeps


@dataclass(frozen=True)
class Answer:
    """What came of a request: a status, or else why there is none.

    `left` says whether any of it may have reached the endpoint.
    """

    status: int | None
    said: str
    text: str = ""
    retry_after: float | None = None
    left: bool = True

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Client:
    """Posts requests one after the other; redirects are not followed, and answers end in time."""

    def __init__(
        self, endpoint: Endpoint, flow: str, timeout: str | timedelta, connect_timeout: str | timedelta
    ) -> None:
        self._endpoint, self._flow = endpoint, flow
        self._timeout = duration(timeout).total_seconds()
        self._connect_timeout = duration(connect_timeout).total_seconds()
        self._tls = _tls(endpoint) if endpoint.address.scheme == "https" else None
        self._kept: HTTPConnection | None = None

    def post(self, request: Request, attempt: int, *, again: bool = True) -> Answer:
        """Post a request; `again` allows for a second one where the kept connection was closed."""
        body, reused = request.body, self._is_alive()
        try:
            connection = self._kept or self._connected()
        except (OSError, HTTPException) as error:
            return Answer(None, f"can't be reached: {_line(error)}", left=False)
        try:
            return self._exchanged(connection, body, self._headers(request, attempt, body))
        except (OSError, HTTPException) as error:
            self.close()
            if reused and again and isinstance(error, ConnectionError):
                return self.post(request, attempt, again=False)
            return Answer(None, self._explained(error))

    def close(self) -> None:
        """Let go of the connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _headers(self, request: Request, attempt: int, body: bytes) -> dict[str, str]:
        own = {"User-Agent": "penstock", "Accept": "*/*", **request.headers(self._flow, attempt)}
        if self._endpoint.secret is not None:
            own |= signature_headers(self._endpoint.secret, request.id, int(time.time()), body)
        theirs = {name: value.value for name, value in self._endpoint.headers.items()}
        return own | theirs

    def _is_alive(self) -> bool:
        """Whether there is a kept connection; one that can be read from was closed by the endpoint."""
        if self._kept is None or self._kept.sock is None:
            self.close()
            return False
        poll = select.poll()
        poll.register(self._kept.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        if poll.poll(0):
            self.close()
        return self._kept is not None

    def _connected(self) -> HTTPConnection:
        parts = self._endpoint.address
        place: dict[str, Any] = {"port": parts.port, "timeout": self._connect_timeout}
        made = (
            HTTPConnection(parts.hostname or "", **place)
            if self._tls is None
            else HTTPSConnection(parts.hostname or "", **place, context=self._tls)
        )
        made.response_class = BoundedResponse
        made.connect()
        self._kept = made
        return made

    def _exchanged(self, connection: HTTPConnection, body: bytes, headers: dict[str, str]) -> Answer:
        connection.sock.settimeout(self._timeout)
        # It may answer before it has read all, as one does that finds a body too large.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", self._endpoint.path, body, headers)
        with connection.getresponse() as response:
            text = self._text(response)
            return Answer(
                response.status,
                f"answered {response.status}",
                text,
                retry_after(response.getheader("Retry-After"), time.time()),
            )

    def _text(self, response: HTTPResponse) -> str:
        """Return the beginning of what it says; a connection with more to come is not kept."""
        try:
            found = response.read(_DRAINED)
            if not response.isclosed():
                self.close()
        except (OSError, HTTPException, ValueError):
            self.close()
            return ""
        return self._endpoint.redacted(found.decode(errors="replace"))[:SHOWN]

    def _explained(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"did not answer in {self._timeout:g} s"
        return f"broke off: {self._endpoint.redacted(_line(error))[:200]}"


def _tls(endpoint: Endpoint) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=endpoint.ca)
    except OSError as error:
        raise SettingsError(
            f"ca of {endpoint.name} can't be read: {error.strerror or type(error).__name__}",
            hint="it is the path of a file with certificates in PEM, on every machine of the Spark cluster",
        ) from None


def _line(error: Exception) -> str:
    """What an error says, in one line."""
    said = " ".join((getattr(error, "strerror", None) or str(error)).split())
    return said or type(error).__name__
