"""Who brings notifications to users: an HTTP server that knows duplicates, and that fails now and then."""

import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import ClassVar, Self

from penstock.documents import JsonObject
from penstock.errors import DataError
from penstock.settings import Secret
from penstock.targets.webhook import verify_signature

FAILS, SLOW, LOSES = 41, 397, 71  # one of so many requests: refused with 500; too slow; its answer is lost
_TOO_SLOW = 3.0  # seconds: longer than the webhook waits


class Receiver:
    """Listens on loopback; `taken` are the notifications that users got, each under its key.

    `counts` has the requests, and of those what became of them: failed, slow, lost answers, and duplicates
    that were recognised by their key and refused.
    """

    def __init__(self, secret: Secret) -> None:
        self.taken: dict[str, tuple[float, JsonObject]] = {}
        self.counts: Counter[str] = Counter()
        self._secret, self._lock = secret, threading.Lock()
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/notifications"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def judge(self, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        """Take a request, or fail at it; status 0 means that nobody gets the answer."""
        with self._lock:
            self.counts["requests"] += 1
            number = self.counts["requests"]
        if number % FAILS == 0:
            self.counts["failed"] += 1
            return 500, "out of order"
        try:
            verify_signature(self._secret, headers, body, now=time.time())
        except DataError as error:
            self.counts["forged"] += 1
            return 401, error.message
        self._take(headers["Idempotency-Key"], json.loads(body))
        if number % SLOW == 0:
            self.counts["slow"] += 1
            time.sleep(_TOO_SLOW)
        lost = number % LOSES == 0
        self.counts["lost"] += lost
        return 0 if lost else 200, "taken"

    def _take(self, key: str, notification: JsonObject) -> None:
        """Notify the user, unless the key was there before."""
        with self._lock:
            if key in self.taken:
                self.counts["duplicates"] += 1
            else:
                self.taken[key] = time.time(), notification


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps the connection
    wbufsize = -1  # an answer is one packet: two would wait for each other
    receiver: ClassVar[Receiver]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, text = self.receiver.judge(dict(self.headers), body)
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the other side was killed, or did not wait
            self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep the screen clean."""
