"""Patterns that end with what did not come: decided when the watermark says that it can't any more."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from penstock.process.columns.names import ORDER, US
from penstock.process.patterns.chains import NONE, Chains, Ints, Way
from penstock.process.patterns.once import EVENT, FITS, MATCHED
from penstock.process.state.step import Stepped

TRUNCATED = "truncated"
_KEY, _TURN, _ROW, _DUE, _LINK, _NEW = "_key_number", "_turn", "_row", "_due", "_link", "_new"


@dataclass(frozen=True)
class AbsentStep:
    """Keeps the events of keys until all that could follow them has come; times are in microseconds.

    An event that ends the steps of a way waits for so long as `lasting`. Then its match is emitted, unless an
    event with one of the `forbidden` bits has come after it and within that time. Events are taken in the
    order of their times, whichever came first. One that is later than its own decision is decided at once by
    what is left, and `truncated`.
    """

    by: tuple[str, ...]
    ways: tuple[Way, ...]
    forbidden: int
    lasting: int

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped:
        new = rows.with_columns(pl.lit(value=True).alias(_NEW))
        old = new.clear() if kept is None else kept.with_columns(pl.lit(value=False).alias(_NEW))
        events = pl.concat([old, new]).sort(*ORDER, maintain_order=True)
        decided_at = pl.col(US) + self.lasting
        due = (decided_at <= now) & ((decided_at > last) | pl.col(_NEW))
        results = self._results(events.with_columns(due.alias(_DUE)), last)
        stays = events.filter(pl.col(US) + self._needed > now).select(rows.columns)
        return Stepped(stays, results.select(*self._returned(rows)), self._next_look(stays, now))

    @property
    def _needed(self) -> int:
        """How long an event may be part of a match, or follow one, that is not decided yet."""
        return self.lasting + max(way.within for way in self.ways)

    def _returned(self, rows: pl.DataFrame) -> list[str]:
        own = {*self.by, *ORDER, FITS, EVENT}
        return [EVENT, MATCHED, TRUNCATED, *(name for name in rows.columns if name not in own)]

    def _next_look(self, events: pl.DataFrame, now: int) -> int | None:
        decided_at = pl.col(US) + self.lasting
        look = pl.when(decided_at > now).then(decided_at).otherwise(pl.col(US) + self._needed)
        found = events.select(look.min()).item()
        return None if found is None else int(found)

    def _results(self, events: pl.DataFrame, last: int) -> pl.DataFrame:
        numbered = self._numbered(events)
        chains = Chains(numbered.height * sum(len(way.steps) for way in self.ways))
        forbidden = (pl.col(FITS) & self.forbidden) != 0
        following = pl.when(forbidden).then(US).shift(-1).backward_fill().over(_KEY)
        stayed_away = (following >= pl.col(US) + self.lasting).fill_null(value=True)
        ended = numbered.with_columns(pl.Series(_LINK, self._links(chains, numbered), pl.Int64))
        found = ended.filter(pl.col(_DUE) & stayed_away & (pl.col(_LINK) != NONE))
        late = (pl.col(US) + self.lasting <= last).alias(TRUNCATED)
        return found.with_columns(self._matched(chains, found, numbered[EVENT]), late)

    def _numbered(self, events: pl.DataFrame) -> pl.DataFrame:
        """The events of the keys that have something to decide, each with its key's number and its turn."""
        concerned = events.filter(pl.col(_DUE).any().over(self.by)).with_row_index(_ROW)
        first = pl.col(_ROW).first().over(self.by)
        keys = concerned.with_columns((first.rank("dense") - 1).cast(pl.Int64).alias(_KEY))
        return keys.with_columns(pl.int_range(pl.len()).over(_KEY).alias(_TURN))

    def _links(self, chains: Chains, events: pl.DataFrame) -> Ints:
        """For each event the newest match of the steps that ends with it: its last link, or none."""
        links: Ints = np.full(events.height, NONE)
        keys = int(events[_KEY].n_unique())
        for way in reversed(self.ways):  # where several fit, the first
            parts: Ints = np.full((len(way.steps), keys), NONE)
            for turn in events.partition_by(_TURN, maintain_order=True):
                row, of, bits, times = (
                    turn[name].to_numpy().astype(np.int64) for name in (_ROW, _KEY, FITS, US)
                )
                parts[:, of] = way.advance(chains, parts[:, of], row, bits, times)
                links[row] = np.where(parts[-1, of] == NONE, links[row], parts[-1, of])
        return links

    def _matched(self, chains: Chains, found: pl.DataFrame, events: pl.Series) -> pl.Series:
        numbers, owner = chains.unrolled(found[_LINK].to_numpy())
        parts = pl.DataFrame({_LINK: owner, MATCHED: events.gather(numbers)})
        return parts.group_by(_LINK, maintain_order=True).agg(MATCHED)[MATCHED]
