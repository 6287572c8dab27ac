"""A receiver of webhooks, real and threaded, that records what comes and misbehaves on request."""

import json
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def id(self):
        return self.headers["idempotency-key"]

    @property
    def events(self):
        if self.headers["content-type"] == "application/x-ndjson":
            return [json.loads(line) for line in self.body.splitlines()]
        found = json.loads(self.body)
        return found if isinstance(found, list) else [found]


@dataclass
class Receiver:
    """Listens on loopback; `decide` gets a request and returns what to do: a status, or a word.

    Words are "hang", "drop", "reset", "part" (of an answer), "close" (after it, unannounced), "drip", "huge",
    "endless" (body), "continue" (for ever); a tuple is a status with headers and, perhaps, a text. `taken`
    are the requests that were answered with success, `all` those that came.
    """

    decide: object = 200
    port: int = 0
    all: list[Seen] = field(default_factory=list)
    taken: list[Seen] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self):
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.server = None
        self.start()

    def start(self):
        receiver = self

        class Handler(_Handler):
            owner = receiver

        ThreadingHTTPServer.request_queue_size = 64
        self.ended.clear()
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.open_sockets = set()
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """End it as a kill would: nobody listens, and open connections are cut."""
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            for each in self.open_sockets:
                _abort(each)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook?from=test"

    def ids(self):
        """The ids of all events that were taken, once each, as one who knows duplicates keeps them."""
        with self.lock:
            return {event["id"] for seen in self.taken for event in seen.events}

    def times(self):
        """How often each event was taken."""
        with self.lock:
            return Counter(event["id"] for seen in self.taken for event in seen.events)

    def firsts(self):
        """The events that were taken, in order, without duplicates."""
        with self.lock:
            return list({event["id"]: event for seen in self.taken for event in seen.events}.values())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        with self.owner.lock:
            self.owner.connections += 1
            self.number = self.owner.connections
            self.owner.open_sockets.add(self.connection)

    def finish(self):
        with self.owner.lock:
            self.owner.open_sockets.discard(self.connection)
        super().finish()

    def do_POST(self):
        owner = self.owner
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen = Seen({name.lower(): value for name, value in self.headers.items()}, body, self.number)
        with owner.lock:
            owner.all.append(seen)
        action = owner.decide(seen) if callable(owner.decide) else owner.decide
        if isinstance(action, int | tuple):
            self._answer(seen, *(action if isinstance(action, tuple) else (action,)))
            return
        self.close_connection = True
        getattr(self, f"_{action}")(seen)

    def _answer(self, seen, status, headers=None, text="ok"):
        if 200 <= status < 300:
            with self.owner.lock:
                self.owner.taken.append(seen)
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def _hang(self, _):
        self.owner.ended.wait(30)

    def _drop(self, _):
        pass

    def _reset(self, _):
        _abort(self.connection)

    def _part(self, seen):
        self.wfile.write(b"HTTP/1.1 20")
        self.wfile.flush()
        _abort(self.connection)

    def _close(self, seen):
        """Take it, and close the connection though it was not said."""
        self._answer(seen, 200)

    def _drip(self, _):
        self.wfile.write(b"HTTP/1.1 500 Oh\r\n")
        while not self.owner.ended.wait(0.05):
            self.wfile.write(b"X-More: more\r\n")
            self.wfile.flush()

    def _huge(self, _):
        self.wfile.write(b"HTTP/1.1 500 Oh\r\n")
        for _ in range(90):
            self.wfile.write(b"X-More: " + b"x" * 60_000 + b"\r\n")
        self.wfile.write(b"\r\n")

    def _endless(self, _):
        self.wfile.write(b"HTTP/1.1 500 Oh\r\n\r\n")
        while not self.owner.ended.is_set():
            self.wfile.write(b"x" * 60_000)

    def _continue(self, _):
        while not self.owner.ended.wait(0.001):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def handle(self):
        try:
            super().handle()
        except (ConnectionError, ValueError, OSError):
            return

    def log_message(self, *_):
        pass


def _abort(connection):
    """Close a connection with a reset."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
    except OSError:
        return


def wait_for(true, seconds=60):
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.05)
