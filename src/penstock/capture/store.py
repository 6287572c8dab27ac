"""Where captures are written down: their declarations, positions and states, in a topic for each."""

import json
import os
import socket
import time
from dataclasses import dataclass, replace
from typing import Self

import msgspec

from penstock.capture.capture import Capture
from penstock.capture.position import Position
from penstock.errors import CaptureError
from penstock.identity import Identity
from penstock.log import Broker, Producer
from penstock.log.last_record import last_record
from penstock.settings import Settings

POSITION, DECLARATION, STATE = range(3)  # the partitions of a capture's topic
_PATIENCE = 10_000  # milliseconds: who waits for the log is stuck meanwhile
_CONFIG = {"cleanup.policy": "compact", "retention.ms": "-1"}


@dataclass(frozen=True)
class State:
    """What the process of a capture said last of itself."""

    state: str = "added"
    process: str = ""
    at: float = 0.0
    error: str = ""

    @classmethod
    def now(cls, state: str, error: str = "") -> Self:
        return cls(state, f"{socket.gethostname()}/{os.getpid()}", time.time(), error)


class Store:
    """The captures of a namespace."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._broker = Broker(settings)

    def names(self) -> list[str]:
        """Return the names of all captures."""
        mark = self.topic("")
        found = (name.removeprefix(mark) for name in self._broker.topics() if name.startswith(mark))
        return sorted(name for name in found if self._last(name, DECLARATION))

    def topic(self, name: str) -> str:
        """Return the topic of a capture's own records."""
        return Identity.of_capture(self._settings.namespace, name).ledger

    def has(self, name: str) -> bool:
        """Whether there is a capture of this name."""
        return bool(self._broker.exists(self.topic(name)) and self._last(name, DECLARATION))

    def get(self, name: str) -> Capture:
        """Return a capture, or say which ones there are."""
        found = self._last(name, DECLARATION) if self._broker.exists(self.topic(name)) else None
        if not found:
            known = ", ".join(self.names()) or "none"
            raise CaptureError(
                f"there is no capture {name!r}", hint=f"known are {known}; `penstock capture add` makes one"
            )
        return Capture.from_json(found)

    def put(self, capture: Capture) -> None:
        """Write a capture down."""
        self._broker.ensure(self.topic(capture.name), 3, _CONFIG)
        self._write(capture.name, DECLARATION, capture.to_json())

    def pause(self, name: str, *, paused: bool) -> None:
        """Let a capture's process rest, or go on."""
        self.put(replace(self.get(name), paused=paused))

    def remove(self, name: str) -> None:
        """Forget a capture and its position; its topics stay."""
        self._broker.delete(self.topic(name))

    def position(self, name: str) -> Position | None:
        """Return how far a capture has come, as far as it is decided now."""
        found = self._last(name, POSITION)
        return Position.from_json(found) if found else None

    def state(self, name: str) -> State:
        found = self._last(name, STATE)
        return msgspec.json.decode(found, type=State) if found else State()

    def report(self, name: str, state: State) -> None:
        """Write down what a capture's process says of itself."""
        self._write(name, STATE, json.dumps(msgspec.to_builtins(state)).encode())

    def _last(self, name: str, partition: int) -> bytes | None:
        return last_record(self._settings, self.topic(name), partition, wait_for_open=False)

    def _write(self, name: str, partition: int, value: bytes) -> None:
        with Producer(self._settings, kafka={"message.timeout.ms": _PATIENCE}) as producer:
            producer.send_bytes(self.topic(name), str(partition).encode(), value, partition=partition)
