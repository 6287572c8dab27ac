"""How long events take from the log to their results: counted in buckets, as the scan passes them.

An event's age is known when its batch is planned, its result is out when the batch is finished: an event
counts in the bucket of its greatest possible latency. A batch that is tried again, also after a restart, has
the time at which it was planned first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.documents import JsonObject
from penstock.pipeline.flow_status import LatencyHistogram

BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)  # seconds
_ROUNDING = 1e-9  # 0.25 - 0.2 is a little less than 0.05
_AGE, _ALL, _SUM, _PLANNED = "age", "ages", "age_sum", "planned"


def ages(written: Column) -> list[Column]:
    """What is observed of records by the time at which the log took them in: how many are of which age."""
    planned = F.unix_micros(F.current_timestamp())
    age = planned - F.unix_micros(written)
    within = [F.count_if(age <= int(bound * 1e6)).alias(f"{_AGE}{n}") for n, bound in enumerate(BOUNDS)]
    return [*within, F.count(age).alias(_ALL), F.sum(age).alias(_SUM), F.max(planned).alias(_PLANNED)]


@dataclass
class Latencies:
    """A histogram that only grows: how many events took at most so many seconds, all of them, their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * len(BOUNDS))
    count: int = 0
    sum: float = 0.0

    @property
    def histogram(self) -> LatencyHistogram:
        """What was counted until now."""
        return LatencyHistogram(tuple(self.counts), self.count, self.sum)

    def add(self, observed: Iterable[JsonObject], seconds: float, now: float) -> None:
        """Add what was observed in a batch that is finished now, and whose last try took so many seconds."""
        for each in observed:
            if each.get(_ALL):
                self._add(each, max(seconds, now - each[_PLANNED] / 1e6))

    def _add(self, observed: JsonObject, seconds: float) -> None:
        within = [observed[f"{_AGE}{number}"] for number in range(len(BOUNDS))]
        for number, bound in enumerate(BOUNDS):
            self.counts[number] += _at_most(within, bound - seconds)
        self.count += observed[_ALL]
        self.sum += max(0.0, observed[_SUM] / 1e6) + observed[_ALL] * seconds


def _at_most(within: Sequence[int], age: float) -> int:
    """How many are certainly of at most an age: those in the last bucket that ends before it."""
    passed = [count for count, bound in zip(within, BOUNDS, strict=True) if bound <= age + _ROUNDING]
    return passed[-1] if passed else 0


def quantile(counts: Sequence[int], count: int, share: float) -> float | None:
    """Return the bound under which a share of all events is; None if there are none, or it is above all.

    >>> quantile([0, 90, 99, 100, 100, 100, 100, 100, 100, 100, 100, 100], 100, 0.99)
    0.25
    """
    reached: list[Any] = [
        bound for bound, within in zip(BOUNDS, counts, strict=True) if count and within >= share * count
    ]
    return reached[0] if reached else None
