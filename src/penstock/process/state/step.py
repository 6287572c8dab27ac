"""What happens to a bucket of keys: the interface of steps whose state is one frame. Pure; no Spark."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import polars as pl

BEFORE, FOREVER = -(2**62), 2**62  # watermarks: before the first one, and at the end of a batch query


@dataclass(frozen=True)
class Stepped:
    """What came of a step: state, rows for the result, when to look again, and two counts.

    `dropped` rows went nowhere; a row is `missed` by each of its windows that was over when it came.
    """

    kept: pl.DataFrame
    rows: pl.DataFrame
    timer: int | None
    dropped: int = 0
    missed: int = 0


Fold = Callable[[pl.DataFrame], pl.DataFrame]


class Step(Protocol):
    """What happens to a bucket when rows come or its timer fires; times are in microseconds."""

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped: ...
