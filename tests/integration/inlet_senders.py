"""Senders as people write them: each message is handed over once, at its time, whoever listens or not."""

import select
import socket
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime

import zmq
from inlet_readings import Reading

from penstock.log import Producer

LOCAL = "127.0.0.1"


class Datagrams:
    def __init__(self, port):
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.connect((LOCAL, port))

    def send(self, number):
        with suppress(ConnectionRefusedError):  # what became of an earlier one
            self._socket.send(b"hall %d" % number)

    def close(self):
        self._socket.close()


class Lines:
    """Connects again when its connection is gone; what it could not write is gone, too."""

    def __init__(self, port):
        self._port = port
        self._socket = None

    def send(self, number):
        try:
            if self._socket is None:
                self._connect()
            self._socket.sendall(b"hall %d\n" % number)
        except OSError:
            self._leave()

    def close(self):
        self._leave()

    def _connect(self):
        self._socket = socket.create_connection((LOCAL, self._port), 1)

    def _leave(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class AcknowledgedLines(Lines):
    """Keeps lines until they are acknowledged, and sends them again over a new connection."""

    def __init__(self, port):
        super().__init__(port)
        self._kept = deque()
        self._replies, self._acknowledged = b"", 0

    def send(self, number):
        self._kept.append(b"hall %d\n" % number)
        self.go_on()

    def go_on(self):
        """Write what was not written, and heed what was acknowledged; True if nothing is left."""
        try:
            if self._socket is None:
                self._connect()
                self._replies, self._acknowledged, self._written = b"", 0, 0
            self._socket.sendall(b"".join(list(self._kept)[self._written :]))
            self._written = len(self._kept)
            self._heed()
        except OSError:
            self._leave()
        return not self._kept

    def _received(self):
        data = self._socket.recv(10_000)
        if not data:
            raise ConnectionResetError
        return data

    def _heed(self):
        answers = select.poll()  # select.select knows no file beyond 1,024
        answers.register(self._socket, select.POLLIN)
        if answers.poll(0):
            self._replies += self._received()
        *counts, self._replies = self._replies.split(b"\n")
        for count in counts:
            for _ in range(int(count) - self._acknowledged):
                self._kept.popleft()
                self._written -= 1
            self._acknowledged = int(count)


class ZeroMqMessages:
    """A PUB or a PUSH; it keeps as many messages as there is memory for, if its kind keeps any."""

    def __init__(self, kind, port):
        self._context = zmq.Context()
        self._socket = self._context.socket(kind)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, 20)
        address = f"tcp://{LOCAL}:{port}"
        (self._socket.bind if kind == zmq.PUB else self._socket.connect)(address)

    def send(self, number):
        self._socket.send(b"hall %d" % number)

    def close(self):
        self._socket.close(linger=5000)
        self._context.term()


class Events:
    """A producer to the log."""

    def __init__(self, settings, topic):
        self._producer, self._topic = Producer(settings), topic

    def send(self, number):
        self._producer.send(self._topic, Reading("hall", number, datetime.now(UTC)))

    def close(self):
        self._producer.close()
