"""What every way in has in common: messages come out of it, and it may be asked to wait."""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol


class Incoming(NamedTuple):
    """A message as it came, with its sender; `fault` says why it is no event, whatever it holds."""

    data: bytes
    sender: str
    fault: str | None = None


class Receiver(ABC):
    """An open way in; it belongs to one thread.

    Where it `is_patient`, what there is no room for stays with the sender, because nothing more is read;
    elsewhere it is dropped. `address` is where senders reach it, or where it has connected to.
    """

    is_patient: bool
    acknowledges: bool = False  # whether it is to be called back once messages are in the log
    refused: int = 0
    address: str

    @abstractmethod
    def receive(self, wait: float) -> list[Incoming]:
        """Return what is there, waiting up to some seconds for the first message."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Let go of the socket."""
        ...

    def stop_listening(self) -> None:
        """Let nobody new in; what was received before can still be read."""
        return

    def unfinished(self) -> list[Incoming]:
        """Return messages of which only a part has come."""
        return []

    def acknowledge(self) -> None:
        """Let the senders know that all that was received is in the log."""
        return

    def dropped_by_kernel(self) -> int | None:
        """Return how many messages the system dropped before they could be read; None if it does not say."""
        return 0


class Source(Protocol):
    """A way in, described; opening it gives its receiver."""

    def open(self) -> Receiver: ...
