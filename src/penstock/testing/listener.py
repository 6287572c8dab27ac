"""The other end of the crash points: hears which point is passed, and decides what happens there."""

import socket
import socketserver
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.points import VARIABLE

Decide = Callable[[str, str], bool]


class PointListener:
    """Listens to the crash points of the processes that are given its `environment`.

    `decide(point, subject)` is asked at each point, one at a time; True keeps the process from going on, for
    the one who decided to end it. `passed` counts how often each point was reached.
    """

    def __init__(self, decide: Decide) -> None:
        self.passed: Counter[tuple[str, str]] = Counter()
        self._decide = decide
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-points-")
        self._address = str(Path(self._folder.name) / "socket")
        self._lock = threading.Lock()
        listener = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                listener._hear(self.rfile.readline().decode(), self.connection)

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(self._address, Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        return {VARIABLE: self._address}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _hear(self, line: str, connection: socket.socket) -> None:
        words = line.split()
        if len(words) < 2:
            return
        point, subject = words[1], words[2] if len(words) > 2 else ""
        with self._lock:
            self.passed[point, subject] += 1
            held = self._decide(point, subject)
        if held:
            connection.recv(1)  # ends when the process does
        else:
            connection.sendall(b"g")
