"""Keys that rise above what is usual for them, over plain columns. Pure; no Spark.

Rows are kept as counts of panes, the stretches between two rankings. A row counts for the windows that it is
in, and after these for as long as the baseline is, in what is usual.
"""

from dataclasses import dataclass

import polars as pl

from penstock.process.columns.names import END, START, US
from penstock.process.ranking.top import PLACE
from penstock.process.state.step import BEFORE, Stepped

USES, USUAL, GROWTH = "uses", "usual", "growth"
_PANE, _KEY, _SEEN = "_pane", "_key", "_seen"


@dataclass(frozen=True)
class Rises:
    """A ranking for each window's end; lengths are in microseconds, `floor` is in uses."""

    by: tuple[str, ...]
    count: int
    window: int
    every: int
    baseline: int
    floor: float
    begins: int = BEFORE  # no watermark is earlier

    def folded(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Count rows of the same key and pane."""
        panes = rows.with_columns((pl.col(US) // self.every * self.every).alias(_PANE))
        return panes.group_by(*self.by, _PANE).agg(pl.len().cast(pl.Int64).alias(USES))

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped:
        """Take in folded rows, and rank the windows that have ended since the last watermark."""
        last, now = max(last, self.begins), max(now, self.begins)
        counts = self._counts(now)
        new, late = rows.filter(counts), rows.filter(counts.not_() | pl.col(_PANE).is_null())
        panes = pl.concat([new.clear() if kept is None else kept, new])
        panes = panes.group_by(*self.by, _PANE).agg(pl.col(USES).sum())
        left = panes.filter(self._counts(now))
        return Stepped(left, self._ranked(panes, last, now), self._timer(left, now), _total(late))

    def _counts(self, now: int) -> pl.Expr:
        """Whether a pane is in a window that is not over, or in what is usual before one."""
        return pl.col(_PANE) + self.window + self.baseline > now

    def _timer(self, panes: pl.DataFrame, now: int) -> int | None:
        """The end of the next window that has something in it, or when the oldest pane is to be forgotten."""
        following = max(now, -(2**61)) // self.every * self.every + self.every
        open_still = panes.filter(pl.col(_PANE) + self.window > now)
        first = open_still.select(pl.col(_PANE).min() + self.every).item()
        if first is not None:
            return max(following, int(first))
        oldest = panes.select(pl.col(_PANE).min()).item()
        return None if oldest is None else int(oldest) + self.window + self.baseline

    def _ranked(self, panes: pl.DataFrame, last: int, now: int) -> pl.DataFrame:
        keys = panes.select(self.by).unique().with_row_index(_KEY)
        numbered = panes.join(keys, on=self.by, nulls_equal=True).sort(_PANE)
        found = self._grown(self._ended(numbered, last, now), numbered)
        named = found.join(keys, on=_KEY)
        best = named.sort(GROWTH, USES, *self.by, descending=True, nulls_last=True)
        place = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(END).alias(PLACE)
        first = best.with_columns(place).filter(pl.col(PLACE) <= self.count).sort(END, PLACE)
        start = (pl.col(END) - self.window).alias(START)
        return first.select(*self.by, start, END, PLACE, USES, USUAL, GROWTH)

    def _ended(self, panes: pl.DataFrame, last: int, now: int) -> pl.DataFrame:
        """Each key once for every window that it has something in and that has just ended."""
        ends = [pl.col(_PANE) + self.every * number for number in range(1, self.window // self.every + 1)]
        recent = panes.filter(pl.col(_PANE) + self.window > last)
        exploded = recent.select(_KEY, pl.concat_list(ends).alias(END)).explode(END)
        return exploded.filter(pl.col(END).is_between(last, now, closed="right")).unique().sort(END)

    def _grown(self, ended: pl.DataFrame, panes: pl.DataFrame) -> pl.DataFrame:
        """How often each key was used in a window, and how often it usually is: by its rate in the baseline.

        Where nothing at all came in the beginning of the baseline, that does not count.
        """
        end, start = pl.col(END), pl.col(END) - self.window
        seen = panes.select(_KEY, _PANE, pl.col(USES).cum_sum().over(_KEY).alias(_SEEN))
        counted = ended
        for name, moment in (("_end", end), ("_start", start), ("_before", start - self.baseline)):
            counted = _seen_before(counted, seen, moment, name)
        first = panes.select(_PANE, pl.col(_PANE).alias("_first")).unique().sort(_PANE)
        asked = counted.with_columns((start - self.baseline).alias(_PANE))
        known = asked.join_asof(first, on=_PANE, strategy="forward")
        span = (start - pl.col("_first")).clip(lower_bound=self.every)
        usual = (pl.col("_start") - pl.col("_before")) * self.window / span
        used = known.with_columns((pl.col("_end") - pl.col("_start")).alias(USES), usual.alias(USUAL))
        growth = pl.col(USES) / pl.max_horizontal(USUAL, pl.lit(self.floor))
        return used.select(_KEY, END, USES, USUAL, growth.alias(GROWTH))


def _seen_before(asked: pl.DataFrame, seen: pl.DataFrame, moment: pl.Expr, name: str) -> pl.DataFrame:
    """Add how often each key was used before a moment."""
    found = asked.with_columns(moment.alias(_PANE)).join_asof(
        seen, on=_PANE, by=_KEY, strategy="backward", allow_exact_matches=False, check_sortedness=False
    )
    return found.with_columns(pl.col(_SEEN).fill_null(0).alias(name)).drop(_PANE, _SEEN)


def _total(panes: pl.DataFrame) -> int:
    return int(panes.select(pl.col(USES).sum()).item())
