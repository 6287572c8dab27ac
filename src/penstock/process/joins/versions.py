"""The versions of a table's rows, and which of them was there at the time of an event; no Spark."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from penstock.process.keyed.runs import GONE, HASH, find_all
from penstock.process.keyed.step import Done
from penstock.process.windows.order import OFFSET, ORDER, PARTITION, US

KEY, KIND, ROW, EVENT, CUT = "_key", "_kind", "_row", "_event", "_cut"
VERSION_KIND, EVENT_KIND = 0, 1
CORRECTED, TRUNCATED = "corrected", "truncated"
_EACH = (KIND, *ORDER)


@dataclass(frozen=True)
class VersionsStep:
    """Gives events the version of their time; times are in microseconds.

    A version is kept until the one after it is older than `ttl`, as the times of events tell. With `corrects`
    events are kept as long, and told again when a version comes that was there at their time.
    """

    empty: pl.DataFrame  # a run without rows
    ttl: int
    corrects: bool
    timed: bool = False  # it needs no watermark

    @property
    def by(self) -> tuple[str, ...]:
        return (KEY, *_EACH)

    def clock(self, last: int, rows: pl.DataFrame, watermark: int) -> int:  # noqa: ARG002
        """The time of the latest event."""
        newest = rows.filter(pl.col(KIND) == EVENT_KIND).select(pl.col(US).max()).item()
        return last if newest is None else max(last, newest)

    def __call__(self, runs: Sequence[pl.DataFrame], rows: pl.DataFrame, last: int, now: int) -> Done:  # noqa: ARG002
        rows = rows.select(self.empty.columns)
        before = find_all([self.empty, *runs], rows.unique(KEY, maintain_order=True), (KEY,), _EACH)
        known = _versions(before)
        versions = _versions(pl.concat([before, rows]))
        told = [_answered(_events(rows), versions).with_columns(pl.lit(value=False).alias(CORRECTED))]
        if self.corrects:
            told.append(_corrections(_events(before), known, versions))
        kept = rows if self.corrects else rows.filter(pl.col(KIND) == VERSION_KIND)
        after = self.lasting(pl.concat([before, kept]).unique(self.by, keep="last"), now)
        columns = [EVENT, ROW, TRUNCATED, CORRECTED]
        return Done(self._changed(before, after), pl.concat([each.select(columns) for each in told]))

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
        return pl.concat([versions, rows.filter((pl.col(KIND) == EVENT_KIND) & ~old)]).sort(HASH)

    def next_alarm(self, runs: Sequence[pl.DataFrame], now: int) -> int | None:  # noqa: ARG002
        """Nothing happens without an event."""
        return None

    def _changed(self, before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
        new = after.join(before, on=[*self.by, CUT], how="anti", nulls_equal=True)
        gone = before.join(after, on=self.by, how="anti", nulls_equal=True)
        return pl.concat([new, gone.with_columns(pl.lit(value=True).alias(GONE))]).sort(HASH)


def _events(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col(KIND) == EVENT_KIND).select(KEY, *ORDER, EVENT)


def _versions(rows: pl.DataFrame) -> pl.DataFrame:
    """Versions in the order of their times; of those of the same time the last in the log counts."""
    found = rows.filter(pl.col(KIND) == VERSION_KIND).sort(*ORDER)
    return found.unique([KEY, US], keep="last", maintain_order=True).select(KEY, US, ROW, CUT)


def _answered(events: pl.DataFrame, versions: pl.DataFrame) -> pl.DataFrame:
    """Events with the row of their time; truncated where there may have been an older one."""
    there = versions.with_columns(pl.lit(value=True).alias("there"))
    found = events.sort(US, PARTITION, OFFSET).join_asof(
        there.drop(CUT), on=US, by=KEY, check_sortedness=False
    )
    cut = versions.group_by(KEY).agg(pl.col(CUT).any())
    whole = found.join(cut, on=KEY, how="left", maintain_order="left")
    missing = pl.col("there").is_null() & pl.col(CUT).fill_null(value=False)
    return whole.with_columns(missing.alias(TRUNCATED))


def _corrections(events: pl.DataFrame, known: pl.DataFrame, versions: pl.DataFrame) -> pl.DataFrame:
    before, after = (_answered(events, each) for each in (known, versions))
    differs = after[ROW].ne_missing(before[ROW])
    return after.filter(differs).with_columns(pl.lit(value=True).alias(CORRECTED))
