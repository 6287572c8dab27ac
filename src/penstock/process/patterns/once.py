"""Patterns of which an event is in one match at most: a function over columns, which keeps the chains."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from penstock.process.patterns.chains import NONE, Chains, Ints, Way

EVENT, MATCHED, PARTS, CLOCK = "event", "matched", "parts", "clock"
FITS, TIME = "_fits", "_us_of_event"
_KEY, _PART, _NUMBER = "_key_number", "part", "_number"


@dataclass(frozen=True)
class Once:
    """Takes the events of keys in the log's order; what ends a match uses up all that came before it.

    An event that is dated before one that came earlier counts as of that one's time, the key's `clock`.
    `parts` of a key are the events of its open chains: of which step of which way, when, and what.
    """

    by: tuple[str, ...]
    ways: tuple[Way, ...]

    def __call__(self, rows: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the chains that are open, and a row for each match."""
        keys = state.select(*self.by, CLOCK).with_row_index(_KEY)
        open_ = keys.hstack(state.select(PARTS)).explode(PARTS, keep_nulls=False).unnest(PARTS)
        taken = rows.join(keys, on=self.by, how="left", nulls_equal=True, maintain_order="left")
        taken = taken.with_columns(pl.max_horizontal(CLOCK, pl.col(TIME).cum_max().over(_KEY)).alias(TIME))
        events = pl.concat([open_[EVENT], taken[EVENT]])
        chains = Chains(len(events) + taken.height * self._steps)
        parts = self._opened(chains, open_, len(keys))
        ended = self._advanced(chains, parts, taken, first=open_.height)
        clocks = keys.join(taken.group_by(_KEY).agg(pl.col(TIME).max()), on=_KEY, how="left")
        kept = clocks.sort(_KEY).select(*self.by, pl.coalesce(TIME, CLOCK).alias(CLOCK))
        parts_kept = self._closed(chains, parts, open_, taken, events)
        return kept.with_columns(parts_kept), self._matches(chains, taken, events, ended)

    @property
    def _steps(self) -> int:
        return sum(len(way.steps) for way in self.ways)

    def _opened(self, chains: Chains, open_: pl.DataFrame, keys: int) -> Ints:
        """The chains of the state, as parts by step and key."""
        parts: Ints = np.full((self._steps, keys), NONE)
        for number in range(self._steps):
            own = open_.with_row_index(_NUMBER).filter(pl.col(_PART) == number)
            of, events, times = (own[name].to_numpy().astype(np.int64) for name in (_KEY, _NUMBER, TIME))
            for place in range(int(own.group_by(_KEY).len()["len"].max() or 0)):  # type: ignore[arg-type]
                here = own.select(pl.int_range(pl.len()).over(_KEY) == place).to_series().to_numpy()
                parts[number, of[here]] = chains.add(events[here], parts[number, of[here]], times[here])
        return parts

    def _advanced(
        self, chains: Chains, parts: Ints, rows: pl.DataFrame, first: int
    ) -> list[tuple[Ints, Ints]]:
        """Take the first event of every key, then the second…; returns rows that ended matches, and those."""
        turns = rows.with_row_index(_NUMBER).with_columns(pl.int_range(pl.len()).over(_KEY).alias("_turn"))
        ended = []
        for turn in turns.partition_by("_turn", maintain_order=True):
            number, of, bits, times = (
                turn[name].to_numpy().astype(np.int64) for name in (_NUMBER, _KEY, FITS, TIME)
            )
            matches: Ints = np.full(len(of), NONE)
            begin = 0
            for way in self.ways:
                steps = slice(begin, begin + len(way.steps))
                parts[steps, of] = way.advance(chains, parts[steps, of], number + first, bits, times)
                matches = np.where(matches == NONE, parts[steps.stop - 1, of], matches)
                begin = steps.stop
            over = matches != NONE
            parts[:, of[over]] = NONE
            ended.append((number[over], matches[over]))
        return ended

    def _closed(
        self, chains: Chains, parts: Ints, open_: pl.DataFrame, rows: pl.DataFrame, events: pl.Series
    ) -> pl.Series:
        """What is open of each key, as its state has it."""
        times = np.concatenate([open_[TIME].to_numpy(), rows[TIME].to_numpy()]).astype(np.int64)
        steps, keys = np.nonzero(parts != NONE)
        found, owner = chains.unrolled(parts[steps, keys])
        entries = pl.DataFrame(
            {
                _KEY: keys[owner].astype(np.uint32),
                _PART: steps[owner].astype(np.int32),
                TIME: times[found],
                EVENT: events.gather(found),
            }
        )
        grouped = entries.group_by(_KEY, maintain_order=True).agg(pl.struct(_PART, TIME, EVENT).alias(PARTS))
        every = pl.DataFrame({_KEY: np.arange(parts.shape[1], dtype=np.uint32)})
        return every.join(grouped, on=_KEY, how="left", maintain_order="left")[PARTS]

    def _matches(
        self, chains: Chains, rows: pl.DataFrame, events: pl.Series, ended: list[tuple[Ints, Ints]]
    ) -> pl.DataFrame:
        none: list[Ints] = [np.empty(0, np.int64)]
        last = np.concatenate(none + [rows_ for rows_, _ in ended])
        found, owner = chains.unrolled(np.concatenate(none + [matches for _, matches in ended]))
        matched = pl.DataFrame({_NUMBER: owner, MATCHED: events.gather(found)})
        return rows[last].with_columns(matched.group_by(_NUMBER, maintain_order=True).agg(MATCHED)[MATCHED])
