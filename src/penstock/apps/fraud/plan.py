"""How the demo runs: the traffic, how long, and how often the flows write a checkpoint."""

from dataclasses import dataclass

CHECKPOINT_INTERVAL = "3 minutes"


@dataclass(frozen=True)
class Plan:
    """How much traffic, and for how long before and after the kill."""

    rate: int = 1_000  # transactions a second
    seconds: int = 185  # each real-time flow has a checkpoint in it
    after: int = 10
    settled: int = 15  # seconds without delay, after which it is measured: Java compiles what runs often
