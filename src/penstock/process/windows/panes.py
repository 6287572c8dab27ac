"""Windows of fixed length over plain columns: what is open, what fires, what is late. Pure; no Spark.

Rows are kept as panes, the stretches of which every window is made up: an event is added to one pane, however
many windows overlap there, and a window is put together when it fires.
"""

from dataclasses import dataclass, replace

import polars as pl

from penstock.process.columns.names import END, START, US
from penstock.process.state.step import BEFORE, FOREVER
from penstock.process.windows.kept import ROWS, Kept, Taken, flag, kind
from penstock.process.windows.overlaps import Layer, Overlaps
from penstock.process.windows.shape import Fixed

_PANE, _OLD = "_pane", "_old"
_ROOM = 4_000_000  # parts of windows that are put together at a time


@dataclass(frozen=True)
class Panes(Kept):
    """The panes of some keys."""

    place = _PANE
    shape: Fixed

    def take(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Taken:
        rows = self._paned(rows)
        late = rows.filter(self._closes() <= now).drop(_PANE)
        return replace(self.take_folded(kept, self.started(rows, _PANE), last, now), late=late)

    def folded(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Fold rows of a pane, which share their fate: late or not."""
        return self.started(self._paned(rows), _PANE)

    def take_folded(self, kept: pl.DataFrame | None, folded: pl.DataFrame, last: int, now: int) -> Taken:
        """Take in rows that were folded before; late ones stay so."""
        open_still = self._closes() > now
        new, late = folded.filter(open_still), folded.filter(~open_still)
        old = new.clear() if kept is None else kept
        fired = self._fired(old, new, last, now)
        panes = self.merged(pl.concat([old, new]), _PANE).filter(open_still)
        missed = self._count(folded, BEFORE, now - self.within)
        return Taken(panes, fired, late, self._timer(panes, now), missed)

    def waiting(self, panes: pl.DataFrame, last: int) -> int:
        """Count rows once for each of their windows that was not over at the last watermark."""
        return self._count(panes, last, FOREVER)

    def _paned(self, rows: pl.DataFrame) -> pl.DataFrame:
        pane = self._overlaps.pane
        return rows.with_columns((pl.col(US) // pane * pane).alias(_PANE))

    @property
    def _overlaps(self) -> Overlaps:
        return Overlaps.of(self.shape)

    @property
    def _last_end(self) -> pl.Expr:
        """When the last window that a pane is part of ends."""
        return self._overlaps.latest(_PANE) + self._overlaps.size

    def _closes(self) -> pl.Expr:
        """When nothing that a pane is part of can change any more."""
        return self._last_end + self.within

    def _fired(self, old: pl.DataFrame, new: pl.DataFrame, last: int, now: int) -> pl.DataFrame:
        """Windows that end now, and windows that ended before, can still change, and have got new rows.

        One that is closed already when it fires does without the rows that have just come.
        """
        old, new = old.with_columns(flag(_OLD, True)), new.with_columns(flag(_OLD, False))
        closed = now - self.within
        over = self._windows(old, last, min(closed, now))
        panes = self._united(pl.concat([old, new]), _PANE)
        ended = self._windows(panes, max(last, closed), now)
        again = self._touched(new, panes, closed, min(last, now))
        emitted = (pl.col(END) <= last) & pl.col(_OLD)
        fired = pl.concat([over, ended, again])
        return fired.with_columns(kind(emitted=emitted, waited=pl.col(_OLD))).drop(_OLD)

    def _touched(self, new: pl.DataFrame, panes: pl.DataFrame, after: int, until: int) -> pl.DataFrame:
        """Windows that ended in a stretch of time and have got new rows."""
        places = [*self.by, START]
        touched = self._overlaps.pairs(self._overlaps.whole(new, _PANE), after, until).select(places).unique()
        if touched.is_empty():
            return self._windows(panes.clear(), after, until)
        if self.by:
            panes = panes.join(touched, on=self.by, how="semi", nulls_equal=True)
        first, last = (start + self._overlaps.size for start in _span(touched, START))
        found = self._windows(panes, first - 1, last)
        return found.join(touched, on=places, how="semi", nulls_equal=True)

    def _windows(self, panes: pl.DataFrame, after: int, until: int) -> pl.DataFrame:
        """The windows of panes that end later than `after`, and not later than `until`."""
        overlaps = self._overlaps
        if overlaps.block == overlaps.pane or panes.is_empty() or after >= until:
            return self._put_together([overlaps.whole(panes, _PANE)], after, until)
        blocks = panes.with_columns(pl.col(_PANE) // overlaps.block * overlaps.block)
        blocks = self._united(blocks, _PANE)
        layers = [overlaps.blocks(blocks, _PANE), *overlaps.edges(panes, _PANE)]
        return self._put_together(layers, after, until)

    def _put_together(self, layers: list[Layer], after: int, until: int) -> pl.DataFrame:
        """Windows of their parts; as many at a time as have room."""
        counts = [
            layer.parts.select(self._overlaps.count(layer, after, until).sum()).item() for layer in layers
        ]
        if sum(counts) > _ROOM and until - after > self._overlaps.every:
            half = self._half(layers[0].parts, after, until)
            return pl.concat([self._put_together(layers, *part) for part in ((after, half), (half, until))])
        pairs = pl.concat([self._overlaps.pairs(layer, after, until) for layer in layers])
        return self._united(pairs, START, END)

    def _half(self, parts: pl.DataFrame, after: int, until: int) -> int:
        """A time half-way through the ends of windows."""
        first, last = _span(parts, _PANE)
        return (max(after, first) + min(until, last + 2 * self._overlaps.size)) // 2

    def _united(self, parts: pl.DataFrame, *place: str) -> pl.DataFrame:
        return self.merged(parts, *place, also=[pl.col(_OLD).any()])

    def _count(self, panes: pl.DataFrame, after: int, until: int) -> int:
        """Rows, once for each of their windows that end later than `after`, and not later than `until`."""
        windows = self._overlaps.count(self._overlaps.whole(panes, _PANE), after, until)
        return int(panes.select((pl.col(ROWS) * windows).sum()).item())

    def _timer(self, panes: pl.DataFrame, now: int) -> int | None:
        """The next time at which a window ends or a pane is to be forgotten."""
        size, every = self._overlaps.size, self._overlaps.every
        first = (pl.col(_PANE) - size) // every * every + every + size
        passed = (pl.lit(now) - first) // every + 1
        following = pl.max_horizontal(first, first + passed * every)
        ends = pl.when(following <= self._last_end).then(following).otherwise(self._closes())
        found = panes.select(ends.min()).item()
        return None if found is None else int(found)


def _span(frame: pl.DataFrame, name: str) -> tuple[int, int]:
    """The least and the greatest number of a column."""
    column = pl.col(name)
    first, last = frame.select(column.min().alias("first"), column.max().alias("last")).row(0)
    return int(first), int(last)
