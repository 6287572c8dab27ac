"""What happens to the runs of a bucket: the interface of steps whose state is too large for one frame."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl


@dataclass(frozen=True)
class Done:
    """What a step has changed of the state of keys, and the rows for the result."""

    changed: pl.DataFrame
    rows: pl.DataFrame


class BucketStep(Protocol):
    """What happens to the runs of a bucket when rows come or time goes by; times are in microseconds."""

    @property
    def by(self) -> tuple[str, ...]:
        """What identifies a row of a run."""

    @property
    def empty(self) -> pl.DataFrame:
        """A run without rows."""

    @property
    def ttl(self) -> int | None:
        """How often all runs are to be looked through for what does not last."""

    @property
    def timed(self) -> bool:
        """Whether it is to be woken by the watermark."""

    def clock(self, last: int, rows: pl.DataFrame, watermark: int) -> int:
        """What time it is, after it was `last`."""

    def __call__(self, runs: Sequence[pl.DataFrame], rows: pl.DataFrame, last: int, now: int) -> Done: ...

    def lasting(self, run: pl.DataFrame, now: int) -> pl.DataFrame:
        """The rows of the whole state that are still needed."""

    def next_timer(self, runs: Sequence[pl.DataFrame], now: int) -> int | None:
        """When it is to be woken."""
