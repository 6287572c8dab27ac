"""A TCP proxy on loopback that hurts: it cuts, delays, and swallows the reply to a commit."""

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self

_LOOPBACK = "127.0.0.1"
_END_TXN = 26  # Kafka's number for the request that commits or aborts a transaction
Side = Literal["client", "server"]


class Proxy:
    """Passes connections on to a port, and hurts them when asked to; `landed` counts what really happened."""

    def __init__(self, target: int, port: int = 0) -> None:
        self.target = target
        self.landed: dict[str, int] = {"cut": 0, "delayed": 0, "reply dropped": 0}
        self._delay = 0.0
        self._drops = 0
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._listener = socket.create_server((_LOOPBACK, port))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Cut every connection that is open now, and return how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _close(pair)
        self.landed["cut"] += bool(pairs)
        return len(pairs)

    def delay(self, seconds: float) -> None:
        """Hold everything back by some time, until asked otherwise."""
        self._delay = seconds

    def drop_replies_to_commits(self, count: int = 1) -> None:
        """Let the next commits reach the server, and cut the line before its reply comes back."""
        with self._lock:
            self._drops = count

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((_LOOPBACK, self.target), timeout=5)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            line = _Line(self, client, server)
            with self._lock:
                self._pairs.add((client, server))
            for work in (line.to_server, line.to_client):
                threading.Thread(target=work, daemon=True).start()

    def hold_back(self) -> None:
        """Wait as long as everything is to be delayed."""
        if self._delay:
            time.sleep(self._delay)
            self.landed["delayed"] += 1

    def take_drop(self) -> bool:
        """Say whether the reply to the commit that was just seen is to be dropped."""
        with self._lock:
            if self._drops <= 0:
                return False
            self._drops -= 1
        self.landed["reply dropped"] += 1
        return True

    def forget(self, pair: tuple[socket.socket, socket.socket]) -> None:
        with self._lock:
            self._pairs.discard(pair)
        _close(pair)


class _Line:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._pair = (client, server)
        self._mute = threading.Event()

    def to_server(self) -> None:
        client, server = self._pair
        self._pass(client, server, self._watch)

    def to_client(self) -> None:
        client, server = self._pair
        self._pass(server, client, lambda _: None)

    def _watch(self, data: bytes) -> None:
        if is_commit(data) and self._proxy.take_drop():
            self._mute.set()

    def _pass(self, source: socket.socket, target: socket.socket, look: Callable[[bytes], None]) -> None:
        try:
            while data := source.recv(65536):
                self._proxy.hold_back()
                look(data)
                if self._mute.is_set() and source is self._pair[1]:
                    break  # the server has done it; the client must not hear of it
                target.sendall(data)
        except OSError:
            pass
        finally:
            self._proxy.forget(self._pair)


def is_commit(data: bytes) -> bool:
    """Say whether a client's bytes hold the order to commit, in Kafka's protocol or PostgreSQL's."""
    if b"COMMIT\0" in data:
        return True
    place = 0
    while place + 8 <= len(data):
        size, api = struct.unpack_from(">ih", data, place)
        if api == _END_TXN and 0 < size < 4096:
            return True
        if size <= 0:
            return False
        place += 4 + size
    return False


def _close(pair: tuple[socket.socket, socket.socket]) -> None:
    for each in pair:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
