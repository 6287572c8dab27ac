"""A batch's rows and the state of the keys that they touch, through a function; no Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from penstock.process.columns.names import OFFSET, ORDER, PARTITION, US
from penstock.process.keyed.function import KeyedFunction
from penstock.process.state.bucket_step import Done
from penstock.process.state.runs import GONE, HASH, find

DUE = "due"  # whether a key's timer has fired
TIMER, TOUCHED = "_alarm", "_touched"  # as checkpoints have them
_ROUND = "_round"


@dataclass(frozen=True)
class KeyedStep:
    """Calls a function with rows and with the state of their keys; times are in microseconds.

    State that was last touched more than `ttl` before an event is not there for it, whatever the watermark
    is: the rows of such a key are taken in rounds, of which all but the first begin with nothing. `timer` is
    the column of the state that says when a key's timer fires.
    """

    function: KeyedFunction
    ttl: int | None = None
    timer: str | None = None

    def __call__(self, runs: Sequence[pl.DataFrame], rows: pl.DataFrame, last: int, now: int) -> Done:
        """Take rows, and wake the keys whose timer is after the last watermark and not after this one."""
        runs = [self.empty, *runs]
        waking = self._waking(runs, last, now)
        before = find(runs, pl.concat([rows.select(self._key), waking]).unique().sort(HASH), self.by)
        state, emitted = before, [self.function.returns]
        for number, turn in self._rounds(rows.sort(PARTITION, OFFSET, maintain_order=True), before):
            woken, known = (waking, before) if number == 0 else (waking.clear(), before.clear())
            asked = pl.concat([turn.select(self._key), woken]).unique(maintain_order=True)
            if asked.height:
                kept, results = self._called(turn, asked, known, now)
                state = pl.concat([self._without(state, asked), kept])
                emitted.append(results)
        return Done(self._changed(before, state), pl.concat(emitted))

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of the key."""
        return self.function.by

    def clock(self, last: int, rows: pl.DataFrame, watermark: int) -> int:  # noqa: ARG002
        """The watermark's time."""
        return watermark

    @property
    def timed(self) -> bool:
        """Whether time changes anything in it."""
        return self.ttl is not None or self.timer is not None

    @property
    def empty(self) -> pl.DataFrame:
        """A run without rows."""
        own = {HASH: pl.Int64(), GONE: pl.Boolean()}
        own |= {TOUCHED: pl.Int64()} if self.ttl is not None else {}
        own |= {TIMER: pl.Int64()} if self.timer else {}
        return pl.DataFrame(schema={**own, **self.function.state.schema})

    def lasting(self, run: pl.DataFrame, now: int) -> pl.DataFrame:
        """The rows of the whole state that an event on time can still ask for."""
        return run if self.ttl is None else run.filter(pl.col(TOUCHED) + self.ttl >= now)

    def next_timer(self, runs: Sequence[pl.DataFrame], now: int) -> int | None:
        """When a key is to be looked at; rows that were overwritten may make it too early."""
        if self.timer is None:
            return None
        ahead = pl.col(TIMER).filter(pl.col(TIMER) > now).min()
        return min((found for run in runs if (found := run.select(ahead).item()) is not None), default=None)

    @property
    def _key(self) -> list[str]:
        return [HASH, *self.by]

    def _waking(self, runs: Sequence[pl.DataFrame], last: int, now: int) -> pl.DataFrame:
        if self.timer is None:
            return self.empty.select(self._key)
        due = pl.col(TIMER).is_between(last, now, closed="right")
        if self.ttl is not None:
            due &= pl.col(TIMER) <= pl.col(TOUCHED) + self.ttl
        keys = pl.concat([run.filter(due).select(self._key) for run in runs]).unique()
        return find(runs, keys, self.by).filter(due).select(self._key)

    def _rounds(self, rows: pl.DataFrame, before: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        if self.ttl is None:
            yield 0, rows
            return
        timed = self._beside(rows, before.select(*self.by, TOUCHED))
        earlier = pl.max_horizontal(TOUCHED, pl.col(US).cum_max().shift(1).over(self.by))
        fresh = (pl.col(US) > earlier + self.ttl).fill_null(value=False)
        numbered = timed.with_columns(fresh.cum_sum().over(self.by).alias(_ROUND)).drop(TOUCHED)
        found = numbered.partition_by(_ROUND, as_dict=True, include_key=False)
        yield 0, found.pop((0,), rows.clear())
        yield from sorted(((number, turn) for (number,), turn in found.items()), key=lambda each: each[0])

    def _called(
        self, rows: pl.DataFrame, asked: pl.DataFrame, known: pl.DataFrame, now: int
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        state = self._beside(asked, known.drop(HASH))
        due = [(pl.col(TIMER) <= now).fill_null(value=False).alias(DUE)] if self.timer else []
        kept, results = self.function(
            rows.drop(HASH, *ORDER), state.select(*self.function.state.columns, *due)
        )
        own = [HASH, *([TOUCHED] if self.ttl is not None else [])]
        found = self._beside(kept, self._touched(state, rows).select(*self.by, *own))
        return found.with_columns(*self._noted(now)).select(self.empty.columns), results

    def _touched(self, state: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
        if self.ttl is None:
            return state
        timed = self._beside(state, rows.group_by(self.by).agg(pl.col(US).max()))
        return timed.with_columns(pl.max_horizontal(TOUCHED, US).alias(TOUCHED))

    def _noted(self, now: int) -> Iterator[pl.Expr]:
        yield pl.lit(value=False).alias(GONE)
        if self.timer:
            wanted = pl.col(self.timer).dt.epoch("us")
            yield pl.when(wanted.is_not_null()).then(pl.max_horizontal(wanted, now + 1)).alias(TIMER)

    def _changed(self, before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
        """What is kept, and of what is not kept any more only that it is gone."""
        gone = self._without(before, after).select(self._key)
        noted = gone.with_columns(pl.lit(value=True).alias(GONE))
        return pl.concat([after, noted], how="diagonal").sort(HASH)

    def _beside(self, rows: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
        return rows.join(others, on=self.by, how="left", nulls_equal=True, maintain_order="left")

    def _without(self, rows: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
        return rows.join(keys, on=self.by, how="anti", nulls_equal=True)
