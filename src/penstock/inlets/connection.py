"""One sender's TCP connection: bytes become lines, and counts of lines go back."""

import hmac
import socket
from time import monotonic

from penstock.inlets.receiver import Incoming
from penstock.settings import Secret

_CHUNK = 64 * 2**10
_PATIENCE = 10.0  # seconds for the first line, where it has to be a token


class Connection:
    """Reads lines of bounded length; with a token, the first line has to be it."""

    def __init__(self, made: socket.socket, sender: str, longest: int, token: Secret | None) -> None:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.socket = made
        self.is_over = False  # nothing more comes
        self.is_refused = False
        self._sender = sender
        self._longest, self._token, self._since = longest, token, monotonic()
        self._rest = b""  # of a line that is not complete
        self._is_skipping = False  # within a line that is too long
        self._taken = self._replied = 0
        self._unsent = b""

    @property
    def is_overdue(self) -> bool:
        """Whether its token has not come in time."""
        return self._token is not None and monotonic() - self._since > _PATIENCE

    def receive(self) -> list[Incoming]:
        """Return the lines that have come; a connection that breaks is over."""
        try:
            data = self.socket.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self.is_over = self.is_over or not data
        *lines, rest = (self._rest + data).split(b"\n")
        found = [each for line in lines for each in self._line(line)]
        self._rest = rest
        if len(rest) > self._longest:
            found += self._too_long(rest)
        return [] if self.is_refused else found

    def unfinished(self) -> list[Incoming]:
        """Return the last line, if its end has not come: what was cut may look whole, and isn't."""
        rest, self._rest = self._rest, b""
        is_line = rest and not self._is_skipping and self._token is None
        return [Incoming(rest, self._sender, "the connection ended within the line")] if is_line else []

    def acknowledge(self) -> None:
        """Reply how many lines are in the log; a sender that does not read gets the latest count later."""
        if not self._unsent and self._taken > self._replied:
            self._unsent, self._replied = b"%d\n" % self._taken, self._taken
        try:
            self._unsent = self._unsent[self.socket.send(self._unsent) :] if self._unsent else b""
        except BlockingIOError:
            return
        except OSError:
            self._unsent, self.is_over = b"", True

    def _line(self, line: bytes) -> list[Incoming]:
        if self._token is not None:
            self._admit(line)
            return []
        self._taken += 1
        if self._is_skipping:
            self._is_skipping = False
            return []
        if len(line) > self._longest:
            found = self._too_long(line)
            self._is_skipping = False
            return found
        return [Incoming(line, self._sender)]

    def _admit(self, line: bytes) -> None:
        expected = b"" if self._token is None else self._token.value.encode()
        if hmac.compare_digest(line.rstrip(b"\r"), expected):
            self._token = None
        else:
            self.is_refused = self.is_over = True

    def _too_long(self, line: bytes) -> list[Incoming]:
        """Report a line once, with its beginning; the rest is skipped."""
        self._rest = b""
        if self._token is not None:
            self.is_refused = self.is_over = True
        was_skipping, self._is_skipping = self._is_skipping, True
        fault = f"the line is longer than {self._longest} bytes, this is its beginning"
        return [] if was_skipping else [Incoming(line[: self._longest], self._sender, fault)]
