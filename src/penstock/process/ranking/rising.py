"""The keys that rise most above what is usual for them, ranked again every few seconds."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegerType, LongType, StructField, StructType

from penstock.durations import MICROSECOND, duration
from penstock.errors import FlowError
from penstock.process.columns.lineage import original
from penstock.process.columns.names import END, FINAL, START
from penstock.process.columns.naming import event_time, keys_of, quoted, refuse_keys, refuse_own
from penstock.process.ranking.rises import GROWTH, USES, USUAL, Rises
from penstock.process.ranking.top import PLACE
from penstock.process.state.description import StateDescription
from penstock.process.state.step import BEFORE
from penstock.process.state.vectorised import columns_of, vectorised
from penstock.process.time.horizon import passed
from penstock.process.time.order import order_of
from penstock.process.time.watermark import Watermark, as_watermark

RESULT_COLUMNS = (START, END, PLACE, USES, USUAL, GROWTH)


@dataclass(frozen=True)
class RiseFold:
    """Counts rows before they are shuffled."""

    rises: Rises

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        return self.rises.folded(rows)


def rising(
    count: int,
    *,
    by: str | tuple[str, ...],
    time: str,
    within: str | timedelta,
    every: str | timedelta,
    baseline: str | timedelta,
    watermark: Watermark | str | timedelta,
    floor: float = 1.0,
) -> Callable[[DataFrame], DataFrame]:
    """Return the keys that rise most: used more often, in a hopping window, than is usual for them.

        posts.transform(
            ranking.rising(
                10, by="tag", time="at", within="1 minute", every="5 seconds", baseline="1 hour",
                watermark="2 seconds",
            )
        )

    `uses` are a key's rows in the window, `usual` how many it would have by its own rate in the baseline
    before, and `growth` is the one by the other; a key that usually has less than `floor` counts as one that
    has so many. Each window is emitted once, when the watermark has passed its end. Rows that come later
    count in windows that are still open, and in the baseline of later ones. State is a count for each key and
    stretch of `every` in the baseline, in one frame.
    """
    names = keys_of(by, RESULT_COLUMNS, "ranking.rising", least=1)
    window, pane, before = (duration(each) // MICROSECOND for each in (within, every, baseline))
    rises = Rises(names, count, window, pane, before, floor)
    _check(rises)
    limit = as_watermark(watermark)
    return lambda rows: _risen(rows, rises, time, limit)


def _check(rises: Rises) -> None:
    if rises.count < 1:
        raise FlowError(f"the {rises.count} keys that rise most, expected at least 1")
    if rises.window % rises.every or rises.baseline % rises.every:
        window, baseline, every = (each * MICROSECOND for each in (rises.window, rises.baseline, rises.every))
        raise FlowError(
            f"a window of {window} and a baseline of {baseline}, every {every}",
            hint="let both be multiples of `every`",
        )
    if not rises.floor > 0:
        raise FlowError(f"a floor of {rises.floor}, expected more than 0")


def _risen(rows: DataFrame, rises: Rises, time: str, watermark: Watermark) -> DataFrame:
    refuse_own(rows)
    refuse_keys(rows, rises.by)
    timed = watermark.marked(rows, event_time(rows, time))
    columns = timed.select(*map(quoted, rises.by), *order_of(timed)[:1])
    own = [StructField(name, LongType()) for name in (START, END)]
    own += [StructField(PLACE, IntegerType()), StructField(USES, LongType())]
    own += [StructField(name, DoubleType()) for name in (USUAL, GROWTH)]
    schema = StructType([*(columns.schema[name] for name in rises.by), *own])
    begun = Rises(**vars(rises) | {"begins": 0 if rows.isStreaming else BEFORE})
    found = vectorised(columns, begun, schema, _state(rows, columns, rises), fold=RiseFold(rises))
    return passed(found.select(*map(quoted, rises.by), *_times(), PLACE, USES, USUAL, GROWTH), F.col(END))


def _times() -> list[Column]:
    start, end = (F.timestamp_micros(name) for name in (START, END))
    return [start.alias(START), end.alias(END, metadata={FINAL: True})]


def _state(rows: DataFrame, columns: DataFrame, rises: Rises) -> StateDescription:
    """All keys are in one bucket, and are columns like others."""
    lengths = "{window} every {every} over {baseline}".format(**vars(rises))
    by = ", ".join(original(rows.schema, name) for name in rises.by)
    kept = columns_of(columns.schema, *rises.by)
    title = f"rising {', '.join(rises.by)}, {lengths} microseconds"
    return StateDescription.of(f"rising {by}, {lengths}", kept, (), 1, title=title)
