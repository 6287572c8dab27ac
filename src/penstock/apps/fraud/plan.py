"""How the demo runs: the traffic, how long, and how often the flows in real time write a checkpoint."""

from dataclasses import dataclass

CHECKPOINT_INTERVAL = "30 seconds"
# For processes that live minutes: compiling for years takes the two cores that they need.
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"}
_LEAST_AT_FIRST = 50  # with fewer, the eight payments of a stolen card take more than a minute


@dataclass(frozen=True)
class Plan:
    """How much traffic, and for how long before and after the kill."""

    rate: int = 1_000  # transactions a second
    seconds: int = 65  # each flow in real time has two checkpoints in it
    after: int = 8
    settled: int = 8  # seconds without delay, after which it is measured: Java compiles what runs often
    settled_within: int = 20  # seconds: after them it is measured as it is
    caught_up_within: int = 50  # seconds after the kill: then the traffic ends, on a machine that is too slow

    @property
    def rate_at_first(self) -> int:
        """Transactions a second until both flows have emitted alerts: Spark starts with a small backlog."""
        return min(self.rate, max(self.rate // 10, _LEAST_AT_FIRST))
