"""Which windows of fixed length a stretch of time is part of. Pure; no Spark.

A window is put together of parts. Where it is made up of many panes, neighbouring ones are put together
first: of n panes a window then needs about 3 · √n parts.
"""

from dataclasses import dataclass
from math import isqrt

import polars as pl

from penstock.durations import MICROSECOND
from penstock.process.columns.names import END, START
from penstock.process.windows.shape import Fixed

_MANY = 64  # panes of a window, from which on neighbours are put together


@dataclass(frozen=True)
class Layer:
    """Parts of windows: each belongs to those that begin from `first` to `last`, both included."""

    parts: pl.DataFrame
    first: pl.Expr
    last: pl.Expr


@dataclass(frozen=True)
class Overlaps:
    """Windows of a size, of which one begins every so often, as numbers of microseconds."""

    size: int
    every: int
    pane: int

    @classmethod
    def of(cls, shape: Fixed) -> "Overlaps":
        return cls(shape.size // MICROSECOND, shape.every // MICROSECOND, shape.pane // MICROSECOND)

    @property
    def block(self) -> int:
        """The length of neighbouring panes that are put together first."""
        panes = self.size // self.pane
        return self.pane * (isqrt(panes) if panes >= _MANY else 1)

    def latest(self, pane: str) -> pl.Expr:
        """The start of the last window that a pane is part of."""
        return pl.col(pane) // self.every * self.every

    def whole(self, panes: pl.DataFrame, pane: str) -> Layer:
        """Panes as parts of all their windows."""
        return Layer(panes, pl.col(pane) - self.size + self.pane, pl.col(pane))

    def blocks(self, blocks: pl.DataFrame, block: str) -> Layer:
        """Blocks as parts of the windows that they are in altogether."""
        return Layer(blocks, pl.col(block) + self.block - self.size, pl.col(block))

    def edges(self, panes: pl.DataFrame, pane: str) -> list[Layer]:
        """Panes as parts of the windows that have a part of their block only: its end, or its beginning."""
        block = pl.col(pane) // self.block * self.block
        ends = Layer(panes, block + 1, pl.col(pane))
        begins = Layer(panes, pl.col(pane) - self.size + self.pane, block + self.block - self.size - 1)
        return [ends, begins]

    def count(self, layer: Layer, after: int, until: int) -> pl.Expr:
        """How many windows each part belongs to that end later than `after`, and not later than `until`."""
        first, last = self._starts(layer, after, until)
        return ((last - first) // self.every + 1).clip(lower_bound=0)

    def pairs(self, layer: Layer, after: int, until: int) -> pl.DataFrame:
        """Parts, each once for every such window, with its start and end."""
        first, last = self._starts(layer, after, until)
        found = layer.parts.with_columns(first.alias(START), last.alias(END)).filter(
            pl.col(START) <= pl.col(END)
        )
        starts = pl.int_ranges(START, pl.col(END) + 1, self.every)
        return (
            found.with_columns(starts.alias(START))
            .explode(START)
            .with_columns((pl.col(START) + self.size).alias(END))
        )

    def _starts(self, layer: Layer, after: int, until: int) -> tuple[pl.Expr, pl.Expr]:
        first = pl.max_horizontal(layer.first, pl.lit(after - self.size + 1, pl.Int64))
        last = pl.min_horizontal(layer.last, pl.lit(until - self.size, pl.Int64))
        return -(-first // self.every) * self.every, last // self.every * self.every
