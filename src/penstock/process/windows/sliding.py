"""A window for each event, which ends with it, over plain columns. Pure; no Spark.

The result of an event is emitted when the watermark passes its time, with what is kept of its key within the
size before it, equal times included. That of a late one that still counts is emitted at once, and corrects
those after it whose windows it is in.
"""

from dataclasses import dataclass

import polars as pl

from penstock.durations import MICROSECOND
from penstock.process.columns.names import END, START, US
from penstock.process.windows.kept import EVENT, Kept, Taken, flag, kind
from penstock.process.windows.overflow import refuse_overflow
from penstock.process.windows.shape import Sliding

EMITTED = "_told"  # as checkpoints have it
_NEW, _CAME = "_new", "_came"


@dataclass(frozen=True)
class Slides(Kept):
    """The events of some keys, and whether their result is out. No longer kept than a window needs them."""

    place = US
    shape: Sliding

    def take(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Taken:  # noqa: ARG002
        counts = pl.col(US) + self.within > now
        new = rows.filter(counts).with_columns(flag(EMITTED, False), flag(_NEW, True), flag(_CAME, True))
        old = new.clear() if kept is None else kept.with_columns(flag(_NEW, False), flag(_CAME, False))
        events = self._touched(pl.concat([old, new.select(old.columns)]))
        due = (pl.col(US) <= now) & (~pl.col(EMITTED) | (pl.col(_NEW) & counts))
        results = self._results(events, events.filter(due))
        marked = events.drop(_NEW, _CAME).with_columns(pl.col(EMITTED) | (pl.col(US) <= now))
        stays = self._without_old_events(marked.filter(self._needed_until() > now), now)
        return Taken(stays, results, rows.filter(~counts), self._timer(stays))

    def finished(self, results: pl.DataFrame) -> pl.DataFrame:
        """Results stand beside the event that they are of, if events are kept at all."""
        values = super().finished(results)
        return values.with_columns(results[EVENT]) if EVENT in results.columns else values

    @property
    def _size(self) -> int:
        return self.shape.size // MICROSECOND

    def _needed_until(self) -> pl.Expr:
        """The first time at which an event is in no window that can still be emitted or corrected."""
        return pl.col(US) + self._size + self.within

    def _touched(self, events: pl.DataFrame) -> pl.DataFrame:
        """Mark events in whose windows a new one is: the last before them or at their time is near enough."""
        place = [*self.by, US]
        latest = pl.when(pl.col(_NEW).any().over(place)).then(pl.col(US)).forward_fill()
        latest = latest.over(self.by) if self.by else latest
        near = (latest > pl.col(US) - self._size).fill_null(False)
        return events.sort(place).with_columns(near.alias(_NEW))

    def _results(self, events: pl.DataFrame, due: pl.DataFrame) -> pl.DataFrame:
        """Fold the windows of the keys that have a result; events of equal times share theirs."""
        place, first = [*self.by, US], due[US].min()
        concerned = events.filter(pl.col(US) > pl.lit(first, pl.Int64) - self._size)
        if self.by:
            concerned = concerned.join(due.select(self.by).unique(), on=self.by, how="semi", nulls_equal=True)
        windows = concerned.sort(place).rolling(
            US, period=f"{self._size}i", closed="right", group_by=self.by or None
        )
        refuse_overflow(concerned, windows, self.aggregates)
        folded = windows.agg(*self.start()).unique(place)
        start = (pl.col(US) - self._size).alias(START)
        named = kind(emitted=pl.col(EMITTED), waited=~pl.col(_CAME))
        mine = due.select(*place, start, pl.col(US).alias(END), named, *_event(due))
        return mine.join(folded, on=place, how="left", nulls_equal=True)

    def _without_old_events(self, events: pl.DataFrame, now: int) -> pl.DataFrame:
        """What is only needed for the windows of others does without its columns."""
        final = pl.col(EMITTED) & (pl.col(US) + self.within <= now)
        return events.with_columns(pl.when(~final).then(pl.col(name)).alias(name) for name in _event(events))

    def _timer(self, events: pl.DataFrame) -> int | None:
        next_look = pl.when(pl.col(EMITTED)).then(self._needed_until()).otherwise(pl.col(US))
        found = events.select(next_look.min()).item()
        return None if found is None else int(found)


def _event(events: pl.DataFrame) -> list[str]:
    return [EVENT] if EVENT in events.columns else []
