"""Windows as steps over buckets of keys: what is done to rows before and after. Pure; no Spark."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from penstock.errors import DataError
from penstock.process.columns.names import US
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.process.state.step import BEFORE, Stepped
from penstock.process.windows.aggregates import Aggregate
from penstock.process.windows.kept import EVENT, ROWS, Kept
from penstock.process.windows.panes import Panes


@dataclass(frozen=True)
class WindowStep:
    """A step over windows: results and, if there is a side output for them, the events that were too late.

    No watermark is earlier than the one with which a stream begins.
    """

    windows: Kept
    side_output: str | None
    begins: int = BEFORE

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped:
        last, now = max(last, self.begins), max(now, self.begins)
        timeless = pl.col(US).is_null()
        taken = self.windows.take(kept, widened(rows.filter(~timeless), self.windows.aggregates), last, now)
        results = narrowed(self.windows.finished(taken.results))
        if self.side_output is None:
            dropped = taken.late.height + rows.filter(timeless).height
            return Stepped(taken.kept, results, taken.timer, dropped, taken.missed)
        left = [rows.filter(timeless), taken.late.select(rows.columns).cast(rows.schema)]
        late = pl.concat(left).select(*self.windows.by, EVENT, pl.lit(self.side_output).alias(SIDE_OUTPUT))
        emitted = pl.concat([results, late], how="diagonal")
        return Stepped(taken.kept, emitted, taken.timer, missed=taken.missed)


@dataclass(frozen=True)
class FoldedStep:
    """A step over windows whose rows were folded by `PaneFold`: what is late is only counted."""

    windows: Panes
    begins: int = BEFORE

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped:
        last, now = max(last, self.begins), max(now, self.begins)
        timeless = pl.col(self.windows.place).is_null()
        taken = self.windows.take_folded(kept, rows.filter(~timeless), last, now)
        results = narrowed(self.windows.finished(taken.results))
        dropped = pl.concat([taken.late, rows.filter(timeless)]).select(pl.col(ROWS).sum()).item()
        return Stepped(taken.kept, results, taken.timer, int(dropped), taken.missed)


@dataclass(frozen=True)
class PaneFold:
    """Folds rows into panes before they are shuffled, so that a key's rows of a pane cross as one."""

    windows: Panes

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        return self.windows.folded(widened(rows, self.windows.aggregates))


def widened(rows: pl.DataFrame, aggregates: Mapping[str, Aggregate]) -> pl.DataFrame:
    """Rows whose whole numbers have room for sums."""
    whole = [name for name, each in aggregates.items() if each.wide and rows.schema[name].is_integer()]
    return rows.with_columns(pl.col(whole).cast(pl.Int128))


def narrowed(results: pl.DataFrame) -> pl.DataFrame:
    """Results whose whole numbers have 64 bits, or an error that names one that has more."""
    try:
        return results.with_columns(pl.col(pl.Int128).cast(pl.Int64))
    except pl.exceptions.InvalidOperationError as error:
        names = [name for name, kind in results.schema.items() if kind == pl.Int128]
        message = f"the sum {' or '.join(names)} of a window is beyond 64 bits"
        raise DataError(message, hint="cast the column to a decimal") from error
