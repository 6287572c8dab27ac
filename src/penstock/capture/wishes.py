"""What the one who runs a capture wants, and whether it is to stop."""

import threading
from dataclasses import dataclass, field


class Stopped(Exception):
    """The capture was asked to stop: what is written is written."""


@dataclass(frozen=True)
class Wishes:
    """How a capture is to be run; chunks are read by so many `readers`, of so many rows each."""

    accept_timeline: bool = False
    snapshot_again: bool = False
    goes_on: bool = False  # whether a session of the same process came before
    chunk: int = 20_000
    readers: int = 2
    stopped: threading.Event = field(default_factory=threading.Event)

    def raise_if_stopped(self) -> None:
        if self.stopped.is_set():
            raise Stopped
