"""The versions of a table's rows, and which of them was there at the time of an event; no Spark."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from penstock.process.columns.names import OFFSET, ORDER, PARTITION, US
from penstock.process.state.bucket_step import Done
from penstock.process.state.runs import GONE, HASH, find_all

KEY, KIND, ROW, EVENT, CUT = "_key", "_kind", "_row", "_event", "_cut"
CLOCK = "_clock"  # up to when it is sure to be: the time of an event, or of its arrival if it is dated ahead
VERSION_KIND, EVENT_KIND = 0, 1
CORRECTED, TRUNCATED = "corrected", "truncated"
_EACH = (KIND, *ORDER)
_NEW = "_new"


@dataclass(frozen=True)
class VersionsStep:
    """Gives events the version of their time; times are in microseconds.

    A version is kept until the one after it is older than `ttl`, by the times of events; a deletion that is
    the last one until it is that old itself. With `corrects` events are kept as long, and emitted again when
    a version comes that was there at their time. Of events that have the same place (or none) each has a kind
    of its own.
    """

    empty: pl.DataFrame  # a run without rows
    ttl: int
    corrects: bool
    timed: bool = False  # it needs no watermark

    @property
    def by(self) -> tuple[str, ...]:
        return (KEY, *_EACH)

    def clock(self, last: int, rows: pl.DataFrame, watermark: int) -> int:  # noqa: ARG002
        """The time of the latest event; one that is dated ahead must not move it: all keys share it."""
        newest = rows[CLOCK].max() if rows.height else None
        return last if newest is None else max(last, int(newest))  # type: ignore[arg-type]

    def __call__(self, runs: Sequence[pl.DataFrame], rows: pl.DataFrame, last: int, now: int) -> Done:
        rows = rows.select(self.empty.columns)
        before = find_all([self.empty, *runs], rows.unique(KEY, maintain_order=True), (KEY,), _EACH)
        known = _versions(before)
        versions = _versions(pl.concat([before, rows]))
        whole = last - self.ttl  # nothing is forgotten that was there after this time
        emitted = [
            _answered(_events(rows), versions, whole).with_columns(pl.lit(value=False).alias(CORRECTED))
        ]
        if self.corrects:
            emitted.append(_corrections(_events(before), known, versions, whole))
        kept = _distinguished(before, rows) if self.corrects else rows.filter(pl.col(KIND) == VERSION_KIND)
        both = pl.concat([_flagged(before, new=False), _flagged(kept, new=True)])
        after = self.lasting(both.unique(self.by, keep="last"), now)
        columns = [EVENT, ROW, TRUNCATED, CORRECTED]
        return Done(self._changed(before, after), pl.concat([each.select(columns) for each in emitted]))

    def lasting(self, rows: pl.DataFrame, now: int) -> pl.DataFrame:
        """What events can still ask for, or be corrected by."""
        old = pl.col(US) <= now - self.ttl
        following = pl.col(US).shift(-1).over(KEY)
        over = (following <= now - self.ttl) | (pl.col(ROW).is_null() & following.is_null() & old)
        marked = (
            rows.filter(pl.col(KIND) == VERSION_KIND)
            .sort(*ORDER)
            .with_columns(over=over.fill_null(value=False))
        )
        cut = pl.col(CUT) | pl.col("over").any().over(KEY)
        versions = marked.with_columns(cut.alias(CUT)).filter(~pl.col("over")).drop("over")
        return pl.concat([versions, rows.filter((pl.col(KIND) >= EVENT_KIND) & ~old)]).sort(HASH)

    def next_timer(self, runs: Sequence[pl.DataFrame], now: int) -> int | None:  # noqa: ARG002
        """Nothing happens without an event."""
        return None

    def _changed(self, before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
        cut = after.filter(~pl.col(_NEW)).join(before, on=[*self.by, CUT], how="anti", nulls_equal=True)
        new = pl.concat([after.filter(_NEW), cut]).drop(_NEW)
        gone = before.join(after, on=self.by, how="anti", nulls_equal=True)
        return pl.concat([new, gone.with_columns(pl.lit(value=True).alias(GONE))]).sort(HASH)


def _flagged(rows: pl.DataFrame, *, new: bool) -> pl.DataFrame:
    return rows.with_columns(pl.lit(new).alias(_NEW))


def _events(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col(KIND) >= EVENT_KIND).select(KEY, *ORDER, EVENT)


def _distinguished(before: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of which events that have the place of another one get the next kind that is free."""
    place, is_event = [KEY, *ORDER], pl.col(KIND) >= EVENT_KIND
    taken = before.filter(is_event).group_by(place).agg(pl.col(KIND).max().alias("taken"))
    known = rows.join(taken, on=place, how="left", nulls_equal=True, maintain_order="left")
    number = pl.int_range(pl.len()).over(*place, KIND) + pl.col("taken").fill_null(0)
    kind = pl.when(is_event).then(number + EVENT_KIND).otherwise(KIND).cast(rows.schema[KIND])
    return known.with_columns(kind.alias(KIND)).drop("taken")


def _versions(rows: pl.DataFrame) -> pl.DataFrame:
    """Versions in the order of their times; of those of the same time the last in the log counts."""
    found = rows.filter(pl.col(KIND) == VERSION_KIND).sort(*ORDER, maintain_order=True)
    return found.unique([KEY, US], keep="last", maintain_order=True).select(KEY, US, ROW, CUT)


def _answered(events: pl.DataFrame, versions: pl.DataFrame, whole: int) -> pl.DataFrame:
    """Events with the row of their time; truncated where there may have been one that is forgotten.

    Of a key that was deleted all may be: then nothing but the time says so.
    """
    there = versions.with_columns(pl.lit(value=True).alias("there"))
    found = events.sort(US, PARTITION, OFFSET, maintain_order=True).join_asof(
        there.drop(CUT), on=US, by=KEY, check_sortedness=False
    )
    cut = versions.group_by(KEY).agg(pl.col(CUT).any())
    beside = found.join(cut, on=KEY, how="left", maintain_order="left")
    forgotten = pl.col(CUT).fill_null(value=False) | (pl.col(US) <= whole)
    missing = pl.col("there").is_null() & forgotten & pl.col(KEY).is_not_null()
    return beside.with_columns(missing.alias(TRUNCATED))


def _corrections(
    events: pl.DataFrame, known: pl.DataFrame, versions: pl.DataFrame, whole: int
) -> pl.DataFrame:
    before, after = (_answered(events, each, whole) for each in (known, versions))
    differs = after[ROW].ne_missing(before[ROW])
    return after.filter(differs).with_columns(pl.lit(value=True).alias(CORRECTED))
