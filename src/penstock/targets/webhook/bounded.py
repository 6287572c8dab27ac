"""Answers within bounds: whatever an endpoint sends, and however slowly, it ends."""

import io
import socket
import time
from http.client import HTTPException, HTTPResponse
from typing import Any, BinaryIO, cast

LARGEST = 256 * 1024  # bytes of an answer that are read, its headers included


class BoundedReader(io.RawIOBase):
    """Reads from a socket until a deadline, and so many bytes at most."""

    def __init__(self, sock: socket.socket, seconds: float, limit: int = LARGEST) -> None:
        self._socket, self._raw = sock, sock.makefile("rb", buffering=0)
        self._deadline, self._left = time.monotonic() + seconds, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer takes too long")
        if self._left <= 0:
            raise HTTPException(f"the answer is longer than {LARGEST:,} bytes")
        self._socket.settimeout(left)
        count = cast(int, self._raw.readinto(memoryview(buffer)[: self._left]))
        self._left -= count
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Sized:
    """What a response takes for its socket."""

    def __init__(self, sock: socket.socket, seconds: float) -> None:
        self._socket, self._seconds = sock, seconds

    def makefile(self, _: str) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(BoundedReader(self._socket, self._seconds)))


class BoundedResponse(HTTPResponse):
    """A response that is read within bounds; its whole has to come in the time that the socket waits."""

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(cast(socket.socket, _Sized(sock, sock.gettimeout() or 60.0)), *arguments, **named)
