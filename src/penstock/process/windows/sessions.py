"""Session windows over plain columns. Pure; no Spark.

A late event may bridge two sessions or move a session's start: results that were emitted under another start
are retracted.
"""

from dataclasses import dataclass

import polars as pl

from penstock.durations import MICROSECOND
from penstock.process.columns.names import END, START, US
from penstock.process.windows.kept import KIND, RETRACTED, Kept, Taken, flag, kind
from penstock.process.windows.shape import Session

_GROUP, _CHANGED = "_group", "_changed"
_EMITTED = "_told"  # as checkpoints have it
_WAITED = (
    "_waited"  # whether a part of a session was there, and not emitted, before the rows that have just come
)


@dataclass(frozen=True)
class Sessions(Kept):
    """The sessions of some keys: whether a result is out, and whether it is not of what is there now."""

    place = START
    shape: Session

    def take(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Taken:  # noqa: ARG002
        rows = rows.with_columns(pl.col(US).alias(START), (pl.col(US) + self._gap).alias(END))
        old = self._empty(rows) if kept is None else kept
        over = pl.col(END) + self.within <= now
        closing, old = old.filter(over), old.filter(~over)
        rows, old = self._grouped(rows, old, now)
        late, rows = rows.filter(pl.col(_GROUP).is_null()), rows.drop_nulls(_GROUP)
        sessions = self._united(rows, old)
        retracted = self._retracted(old, sessions)
        everything = pl.concat([closing.with_columns(flag(_WAITED, True)), sessions.drop(_GROUP)])
        due = (pl.col(END) <= now) & pl.col(_CHANGED)
        fired = everything.filter(due).with_columns(kind(emitted=pl.col(_EMITTED), waited=pl.col(_WAITED)))
        fired, everything = fired.drop(_WAITED), everything.drop(_WAITED)
        stays = everything.filter(~over).with_columns(
            (pl.col(_EMITTED) | due).alias(_EMITTED), (pl.col(_CHANGED) & ~due).alias(_CHANGED)
        )
        results = pl.concat([fired, retracted.select(fired.columns)])
        return Taken(stays, results, late.drop(START, END, _GROUP), self._timer(stays))

    @property
    def _gap(self) -> int:
        return self.shape.gap // MICROSECOND

    def _empty(self, rows: pl.DataFrame) -> pl.DataFrame:
        return self.started(rows.clear(), START, END).with_columns(
            flag(_EMITTED, False), flag(_CHANGED, True)
        )

    def _grouped(self, rows: pl.DataFrame, old: pl.DataFrame, now: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Number what touches: rows and sessions of one number are one session; late rows get none."""
        rows, old = rows.with_row_index("_row"), old.with_row_index("_session")
        places = pl.concat(
            [rows.select(*self.by, START, END, "_row"), old.select(*self.by, START, END, "_session")],
            how="diagonal",
        )
        places = places.sort(*self.by, START, END)
        reach = pl.col(END).cum_max().shift(1)
        before = reach.over(*self.by) if self.by else reach
        begins = before.is_null() | (pl.col(START) > before)
        places = places.with_columns(begins.cum_sum().alias(_GROUP))
        alive = (pl.col(END).max() + self.within > now) | pl.col("_session").is_not_null().any()
        places = places.with_columns(pl.when(alive.over(_GROUP)).then(pl.col(_GROUP)).alias(_GROUP))
        return (
            rows.join(places.select("_row", _GROUP).drop_nulls("_row"), on="_row", how="left").drop("_row"),
            old.join(
                places.select("_session", _GROUP).drop_nulls("_session"), on="_session", how="left"
            ).drop("_session"),
        )

    def _united(self, rows: pl.DataFrame, old: pl.DataFrame) -> pl.DataFrame:
        """Put together what has one number."""
        new = self.started(rows, START, END, _GROUP).with_columns(flag(_EMITTED, False), flag(_CHANGED, True))
        waited = (~pl.col(_EMITTED)).alias(_WAITED)
        parts = pl.concat(
            [old.with_columns(waited), new.select(old.columns).with_columns(flag(_WAITED, False))]
        )
        start = pl.col(START).min()
        emitted, changed = (
            pl.col(_EMITTED) & (pl.col(START) == start),
            pl.col(_CHANGED).any() | (pl.len() > 1),
        )
        spans = parts.group_by(_GROUP).agg(
            start, pl.col(END).max(), emitted.any(), changed, pl.col(_WAITED).any()
        )
        return self.merged(parts, _GROUP).join(spans, on=_GROUP).select(*old.columns, _WAITED)

    def _retracted(self, old: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
        """Sessions whose result is out under a start that is no session's any more."""
        now_at = sessions.select(_GROUP, pl.col(START).alias("_start"))
        gone = old.filter(_EMITTED).join(now_at, on=_GROUP).filter(pl.col(START) != pl.col("_start"))
        return gone.with_columns(pl.lit(RETRACTED).alias(KIND))

    def _timer(self, sessions: pl.DataFrame) -> int | None:
        next_look = pl.when(pl.col(_CHANGED)).then(pl.col(END)).otherwise(pl.col(END) + self.within)
        found = sessions.select(next_look.min()).item()
        return None if found is None else int(found)
