"""The horizon: how far the watermark of a stream had come, for a replay that is compared with the stream.

A stream keeps the events that are ahead of its watermark where their order matters, and the windows that are
not over. A replay has no watermark and lets all go, unless it is planned within a horizon.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.durations import MICROSECOND

_WAITING = "waiting "
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_horizon: ContextVar["Horizon | None"] = ContextVar("horizon", default=None)


@dataclass
class Horizon:
    """A watermark, and the rows that plans have left out because it has not passed them."""

    watermark: datetime
    left_out: list[DataFrame] = field(default_factory=list)

    def split(self, rows: DataFrame, time: Column) -> DataFrame:
        """Return the rows that the watermark has passed, and keep the others in mind."""
        behind = F.unix_micros(time) <= F.lit((self.watermark - _EPOCH) // MICROSECOND)
        name = f"{_WAITING}{len(self.left_out)}"
        self.left_out.append(rows.where(~behind))
        return rows.observe(name, F.count_if(~behind).alias("waiting")).where(behind)

    def waiting(self, observed: Callable[[str], int | None]) -> int:
        """How many rows were left out: as a run has observed under a name, or else counted now."""
        found = ((observed(f"{_WAITING}{place}"), rows) for place, rows in enumerate(self.left_out))
        return sum(rows.count() if count is None else count for count, rows in found)


@contextmanager
def up_to(watermark: datetime) -> Iterator[Horizon]:
    """While plans are made here, replays leave out the events that would still wait at a watermark."""
    made = Horizon(watermark)
    before = _horizon.set(made)
    try:
        yield made
    finally:
        _horizon.reset(before)


def is_bounded() -> bool:
    """Whether replays that are planned here leave something out."""
    return _horizon.get() is not None


def passed(rows: DataFrame, time: Column) -> DataFrame:
    """Return the rows that the watermark has passed; all of them without a horizon."""
    horizon = _horizon.get()
    return rows if horizon is None else horizon.split(rows, time)
