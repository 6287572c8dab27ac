"""Windows of fixed length over plain columns: what is open, what fires, what is late. Pure; no Spark.

Rows are kept as panes, the stretches of which every window is made up: an event is added to one pane, however
many windows overlap there, and a window is put together when it fires.
"""

from dataclasses import dataclass, replace

import polars as pl

from penstock.process.vectorised import FOREVER
from penstock.process.windows.kept import CORRECTED, END, KIND, ON_TIME, ROWS, START, Kept, Taken
from penstock.process.windows.order import US
from penstock.process.windows.shape import MICROSECOND, Fixed

_PANE = "_pane"


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
        panes = self.merged(pl.concat([old, new]), _PANE)
        fired = self._fired(old, new, panes, last, now)
        panes = panes.filter(open_still)
        missed = _count(self._ended(folded, now - self.within))
        return Taken(panes, fired, late, self._alarm(panes, now), missed)

    def waiting(self, panes: pl.DataFrame, last: int) -> int:
        """Count rows once for each of their windows that was not over at the last watermark."""
        return _count(self._ended(panes, FOREVER)) - _count(self._ended(panes, last))

    def _paned(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns((pl.col(US) // self._pane * self._pane).alias(_PANE))

    @property
    def _pane(self) -> int:
        return self.shape.pane // MICROSECOND

    @property
    def _every(self) -> int:
        return self.shape.every // MICROSECOND

    @property
    def _size(self) -> int:
        return self.shape.size // MICROSECOND

    @property
    def _latest(self) -> pl.Expr:
        """The start of the last window that a pane is part of."""
        return pl.col(_PANE) // self._every * self._every

    def _closes(self) -> pl.Expr:
        """When nothing that a pane is part of can change any more."""
        return self._latest + self._size + self.within

    def _fired(
        self, old: pl.DataFrame, new: pl.DataFrame, panes: pl.DataFrame, last: int, now: int
    ) -> pl.DataFrame:
        """Windows that end now, and windows that ended before, can still change, and have got new rows.

        One that is closed already when it fires does without the rows that have just come.
        """
        places, fresh = [*self.by, START], pl.col(END) > last
        closed = pl.col(END) + self.within <= now
        ended = self._ended(panes, now).filter(~closed)
        touched = self._ended(new, now).filter(~fresh, ~closed)
        again = ended.join(touched, on=places, how="semi", nulls_equal=True)
        before = self._ended(old, now)
        due = pl.concat([before.filter(fresh, closed), ended.filter(fresh), again])
        told = before.filter(~fresh).select(places).unique().with_columns(pl.lit(CORRECTED).alias(KIND))
        fired = self.merged(due, START, END).join(told, on=places, how="left", nulls_equal=True)
        return fired.with_columns(pl.col(KIND).fill_null(ON_TIME))

    def _ended(self, panes: pl.DataFrame, now: int) -> pl.DataFrame:
        """Panes of windows that have ended, each once for every such window that it is part of."""
        windows = []
        for back in range(0, self._size, self._every):
            start = self._latest - back
            inside = (pl.col(_PANE) < start + self._size) & (start + self._size <= now)
            windows.append(
                panes.filter(inside).with_columns(start.alias(START), (start + self._size).alias(END))
            )
        return pl.concat(windows)

    def _alarm(self, panes: pl.DataFrame, now: int) -> int | None:
        """The next time at which a window ends or a pane is to be forgotten."""
        first = (pl.col(_PANE) - self._size) // self._every * self._every + self._every + self._size
        passed = (pl.lit(now) - first) // self._every + 1
        following = pl.max_horizontal(first, first + passed * self._every)
        ends = pl.when(following <= self._latest + self._size).then(following).otherwise(self._closes())
        found = panes.select(ends.min()).item()
        return None if found is None else int(found)


def _count(panes: pl.DataFrame) -> int:
    return int(panes.select(pl.col(ROWS).sum()).item())
