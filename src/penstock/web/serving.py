"""Servers over HTTP: where they listen, and how they end."""

import signal
import socket
import threading
from types import FrameType

import uvicorn

from penstock.errors import SettingsError


class StoppableServer(uvicorn.Server):
    """Ends in order when it is asked to, and by itself: the signal is not raised again."""

    def __init__(self, config: uvicorn.Config, stopping: threading.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        self._stopping.set()


def listening(server: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens; a port of 0 is any that is free."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host.strip("[]"), port), family=family)
    except OSError as error:
        raise SettingsError(
            f"the {server} can't listen on {host}:{port}: {error.strerror}", hint="choose another --port"
        ) from error
