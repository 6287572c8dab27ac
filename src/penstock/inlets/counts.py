"""What became of the messages that came in."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """Every message that was received is in exactly one of `sent`, `dead` and `dropped`.

    `waiting` are those of `sent` and `dead` that the log has not acknowledged yet. `dropped_by_kernel` never
    reached the inlet (None where the system does not say); `refused` are connections that were turned away.
    """

    received: int = 0
    sent: int = 0
    dead: int = 0
    dropped: int = 0
    waiting: int = 0
    dropped_by_kernel: int | None = 0
    refused: int = 0

    def __str__(self) -> str:
        kernel = "unknown" if self.dropped_by_kernel is None else f"{self.dropped_by_kernel:,}"
        parts = [f"{self.received:,} received: {self.sent:,} events, {self.dead:,} dead letters"]
        parts += [f"{self.dropped:,} dropped", f"{kernel} dropped by the kernel"]
        parts += [f"{self.refused:,} connections refused"] if self.refused else []
        parts += [f"{self.waiting:,} wait for the log"] if self.waiting else []
        return ", ".join(parts)
