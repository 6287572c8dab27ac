"""Costs as our own benchmarks measured them: what a core does in a second, and what a key keeps.

All are of one machine with two cores, on which the broker ran, too; docs/benchmarks.md has the runs.
"""

from dataclasses import dataclass
from typing import Literal

Work = Literal["filter", "window", "state"]
CORES = 2  # of the machine that everything was measured on
EVENT = 200  # bytes of an event there, about
_GIB = 2**30


@dataclass(frozen=True)
class Cost:
    """A figure and the benchmark that it is from."""

    figure: float
    unit: str
    benchmark: str
    of: str

    @property
    def per_core(self) -> float:
        return self.figure / CORES


COSTS: dict[Work, Cost] = {
    "filter": Cost(89_438, "events/s", "backlog", "a filter from topic to topic, exactly once"),
    "window": Cost(60_703, "events/s", "backlog", "native windows of 100,000 keys, counted by the hour"),
    "state": Cost(88_067, "events/s", "flink", "keyed state over columns, 100,000 keys, from a topic"),
}
"""What two cores did of each kind of work."""
PRODUCE = Cost(169_309, "events/s", "log", "a Python producer of small JSON events, one process")
MEMORY = Cost(1.9 * _GIB, "bytes", "backlog", "Java and Python's workers of a flow without state, at most")
STATE_MEMORY = Cost(
    (2.5 - 2.0) * _GIB / 9_000_000, "bytes a key", "state", "10,000,000 keys against 1,000,000"
)
STATE_DISK = Cost(
    (1.3 - 0.4) * _GIB / 9_000_000, "bytes a key", "state", "the checkpoint of 10,000,000 against 1,000,000"
)
TEXTBOOK = 10_000_000  # bytes a second of a partition, as is commonly taught
