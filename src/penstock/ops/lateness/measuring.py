"""The disorder of a topic's events, measured by Spark: how far each is behind those of its writer before it.

An event is late with a delay if an earlier event of its own writer is newer by more than the delay: the same
that flows go by. A writer is a partition and, of what flows write, the lane.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from penstock.durations import MICROSECOND
from penstock.ops.lateness.ladder import LADDER, microseconds
from penstock.pipeline.observed import writer
from penstock.process.columns.names import SOURCE
from penstock.process.columns.naming import quoted

SHARES = (0.5, 0.9, 0.99, 0.999)
_EXAMPLES = 3
_ACCURACY = 10_000


@dataclass(frozen=True)
class Partition:
    """How late the events of a partition come; `late` are their counts with each delay of the ladder.

    `percentiles` of the disorder are those of `SHARES`. `gaps` are the pauses between two arrivals: of all
    but one in a thousand, and the longest. `ahead` are events dated far ahead of their arrival, which are
    left out of all else, and `examples` the places of some. An empty partition has neither.
    """

    number: int
    events: int = 0
    writers: int = 0
    late: tuple[int, ...] = (0,) * len(LADDER)
    percentiles: tuple[timedelta, ...] = (timedelta(0),) * len(SHARES)
    worst: timedelta = timedelta(0)
    gaps: tuple[timedelta, timedelta] = (timedelta(0), timedelta(0))
    last: datetime | None = None
    ahead: int = 0
    examples: tuple[str, ...] = ()
    at_delay: int = 0  # late with the delay that was asked about

    @property
    def is_empty(self) -> bool:
        return not self.events and not self.ahead


def measured(
    rows: DataFrame, time: str, future: timedelta, partitions: Mapping[int, Any], delay: timedelta | None
) -> list[Partition]:
    """Measure a topic's events, given as flows read them; `partitions` are all that the topic has."""
    found = {row.partition: _partition(row) for row in summed(disorders(rows, time, future), delay).collect()}
    return [found.get(number, Partition(number)) for number in sorted({*partitions, *found})]


def disorders(rows: DataFrame, time: str, future: timedelta) -> DataFrame:
    """Return of each event how far it is behind its writer, in microseconds, and the gap before it."""
    at, written = F.unix_micros(quoted(time)), F.unix_micros(f"{SOURCE}.written")
    narrow = rows.select(
        F.col(f"{SOURCE}.partition").alias("partition"),
        F.col(f"{SOURCE}.offset").alias("offset"),
        writer().alias("writer"),
        at.alias("at"),
        written.alias("written"),
        F.coalesce(at > written + microseconds(future), F.lit(False)).alias("ahead"),
    )
    before = (
        Window.partitionBy("partition", "writer").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    )
    newest = F.max(F.when(~F.col("ahead"), F.col("at"))).over(before)
    arrivals = Window.partitionBy("partition").orderBy("offset")
    gap = F.col("written") - F.lag("written").over(arrivals)
    return narrow.select(
        "*",
        F.greatest(F.coalesce(newest - F.col("at"), F.lit(0)), F.lit(0)).alias("disorder"),
        F.greatest(gap, F.lit(0)).alias("gap"),
    )


def summed(found: DataFrame, delay: timedelta | None) -> DataFrame:
    """Return a row for each partition: exact counts, and percentiles."""
    counted = ~F.col("ahead") & F.col("at").isNotNull()
    disorder = F.when(counted, F.col("disorder"))
    late = F.array(*(F.count_if(disorder > microseconds(each)) for each in LADDER))
    asked = F.lit(0) if delay is None else F.count_if(disorder > microseconds(delay))
    places = F.slice(F.sort_array(F.collect_list(F.when(F.col("ahead"), F.col("offset")))), 1, _EXAMPLES)
    return found.groupBy("partition").agg(
        F.count_if(counted).alias("events"),
        F.count_distinct("writer").alias("writers"),
        late.alias("late"),
        F.percentile_approx(disorder, list(SHARES), _ACCURACY).alias("percentiles"),
        F.max(disorder).alias("worst"),
        F.percentile_approx("gap", 0.999, _ACCURACY).alias("usual_gap"),
        F.max("gap").alias("longest_gap"),
        F.max("written").alias("last"),
        F.count_if("ahead").alias("ahead"),
        places.alias("examples"),
        asked.cast("long").alias("at_delay"),
    )


def _partition(row: Row) -> Partition:
    return Partition(
        number=row.partition,
        events=row.events,
        writers=row.writers,
        late=tuple(row.late),
        percentiles=tuple(map(_length, row.percentiles or (0,) * len(SHARES))),
        worst=_length(row.worst),
        gaps=(_length(row.usual_gap), _length(row.longest_gap)),
        last=_moment(row.last),
        ahead=row.ahead,
        examples=tuple(f"{row.partition}/{offset}" for offset in row.examples),
        at_delay=row.at_delay,
    )


def _length(value: int | None) -> timedelta:
    return (value or 0) * MICROSECOND


def _moment(value: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + value * MICROSECOND
