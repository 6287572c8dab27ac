"""What a batch of changes to two tables changes in their join; no Spark."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from penstock.errors import FlowError
from penstock.process.columns.names import SOURCE
from penstock.process.state.bucket_step import Done
from penstock.process.state.runs import GONE, HASH, find_all

KEY, ID = "_key", "_id"  # what is joined on, and which row of its table
SIDE = "_side"  # 0 for left, 1 for right
LEFT, RIGHT = "_left", "_right"
LEFT_ID, RIGHT_ID = "_left_id", "_right_id"
OLD, NEW = "_old", "_new"
RESULT = ("_result", "_result_too")  # which row of the result
_PAIR = "_pair"


@dataclass(frozen=True)
class ViewStep:
    """Keeps the rows of both tables by what they are joined on, and emits how the pairs have changed."""

    how: str
    empty: pl.DataFrame  # a run without rows
    ttl: None = None
    timed: bool = False

    @property
    def by(self) -> tuple[str, ...]:
        return (KEY, SIDE, ID)

    def clock(self, last: int, rows: pl.DataFrame, watermark: int) -> int:  # noqa: ARG002
        """Time is nothing to it."""
        return watermark

    def lasting(self, run: pl.DataFrame, now: int) -> pl.DataFrame:  # noqa: ARG002
        """Rows stay until they are deleted."""
        return run

    def next_timer(self, runs: Sequence[pl.DataFrame], now: int) -> int | None:  # noqa: ARG002
        """Nothing happens without a change."""
        return None

    def __call__(self, runs: Sequence[pl.DataFrame], rows: pl.DataFrame, last: int, now: int) -> Done:  # noqa: ARG002
        in_order = rows.sort(pl.col(SOURCE).struct.field("offset"), maintain_order=True)
        changed = in_order.unique(self.by, keep="last", maintain_order=True).select(self.empty.columns)
        touched = changed.unique(KEY, maintain_order=True)
        before = find_all([self.empty, *runs], touched, (KEY,), (SIDE, ID))
        _refuse_moved_keys(pl.concat([before, rows.select(before.columns)]), self.by)
        stays = before.join(changed, on=self.by, how="anti", nulls_equal=True)
        after = pl.concat([stays, changed.filter(~pl.col(GONE))])
        return Done(changed.sort(HASH), _compared(self._pairs(before), self._pairs(after)))

    def _pairs(self, rows: pl.DataFrame) -> pl.DataFrame:
        left, right = (
            rows.filter(pl.col(SIDE) == side).select(KEY, pl.col(ID).alias(named), row, SOURCE)
            for side, named, row in ((0, LEFT_ID, LEFT), (1, RIGHT_ID, RIGHT))
        )
        found = left.join(right, on=KEY, how=self.how, coalesce=True, suffix="_too")  # type: ignore[arg-type]
        own, other = (pl.col(name).struct.field("written") for name in (SOURCE, f"{SOURCE}_too"))
        later = own.is_null() | (other > own).fill_null(value=False)
        source = pl.when(later).then(f"{SOURCE}_too").otherwise(SOURCE).alias(SOURCE)
        return found.select(LEFT_ID, RIGHT_ID, pl.struct(LEFT, RIGHT).alias(_PAIR), source)


def _refuse_moved_keys(rows: pl.DataFrame, by: Sequence[str]) -> None:
    """Offsets order two changes in one partition only."""
    partition = pl.col(SOURCE).struct.field("partition").alias("partition")
    places = rows.select(*by, partition).unique(maintain_order=True)
    moved_key = places.filter(places.select(by).is_duplicated())
    if moved_key.height:
        raise FlowError(
            f"a table has changes of the key {moved_key[ID][0]!r} in its partitions "
            f"{' and '.join(map(str, moved_key.filter(pl.col(ID) == pl.col(ID).first())['partition']))}: "
            "it was given more partitions, and which change is the newest is not known any more",
            hint="copy the table to a new topic",
        )


def _compared(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    ids = [LEFT_ID, RIGHT_ID]
    both = before.join(after, on=ids, how="full", nulls_equal=True, coalesce=True, suffix="_after")
    differ = both.filter(pl.col(_PAIR).ne_missing(pl.col(f"{_PAIR}_after")))
    source = pl.coalesce(f"{SOURCE}_after", SOURCE)
    return differ.select(
        *ids, pl.col(_PAIR).alias(OLD), pl.col(f"{_PAIR}_after").alias(NEW), source.alias(SOURCE)
    )


def net(changes: pl.DataFrame) -> pl.DataFrame:
    """Return one change for each row of the result: a row that has moved went here and came there."""
    old, new = (pl.col(name).drop_nulls().first() for name in (OLD, NEW))
    source = pl.col(SOURCE).sort_by(pl.col(NEW).is_null()).first()
    found = changes.group_by(RESULT, maintain_order=True).agg(old, new, source)
    return found.filter(pl.col(OLD).ne_missing(pl.col(NEW)))


def moved(changes: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take changes of a table's rows; where a row is not joined on the same as before, it goes from there.

    State is what each row was joined on.
    """
    newest = changes.unique(ID, keep="last", maintain_order=True)
    there = newest.filter(~pl.col(GONE))
    before = newest.join(state.filter(pl.col(OLD)), on=ID, how="inner")
    left_behind = before.filter(pl.col(GONE) | pl.col(KEY).ne_missing(pl.col(f"{KEY}_before")))
    gone = left_behind.with_columns(
        pl.col(f"{KEY}_before").alias(KEY), pl.lit(value=True).alias(GONE)
    ).select(changes.columns)
    kept = there.select(ID, pl.col(KEY).alias(f"{KEY}_before"), pl.lit(value=True).alias(OLD))
    return kept, pl.concat([gone, there])
