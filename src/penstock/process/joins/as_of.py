"""Events with the row that a table had at their time."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from penstock.durations import duration
from penstock.errors import FlowError
from penstock.process.changes import whole_row
from penstock.process.held import held
from penstock.process.horizon import passed
from penstock.process.joins.versions import (
    CORRECTED,
    CUT,
    EVENT,
    EVENT_KIND,
    KEY,
    KIND,
    ROW,
    TRUNCATED,
    VERSION_KIND,
    VersionsStep,
)
from penstock.process.keyed.buckets import Buckets
from penstock.process.keyed.hashes import key_bucket, row_hash
from penstock.process.keyed.runs import GONE, HASH
from penstock.process.refusals import refuse_missing
from penstock.process.source import PLACE
from penstock.process.state_description import StateDescription
from penstock.process.vectorised import empty_frame, through_buckets
from penstock.process.windows.order import ORDER, TIME, order_of, required_time
from penstock.process.windows.shape import MICROSECOND
from penstock.process.windows.watermark import Watermark, as_watermark

Early = Literal["wait", "correct"]


def as_of(
    table: DataFrame,
    *,
    on: str,
    time: str,
    keeps: str | timedelta,
    name: str = "row",
    since: str = "_source.written",
    early: Early = "wait",
    watermark: Watermark | str | timedelta | None = None,
    buckets: int = 16,
) -> "AsOf":
    """Put beside each event the row that a table had at the event's time, or null.

        payments.transform(joins.as_of(profiles, on="card", time="at", since="changed_at", keeps="1 day",
                                       watermark="30 seconds", name="profile"))

    `table` is the changes of a table as flows read them. A row holds from the time in its column `since` (or
    from when it was written; a deletion always from then) until the next one of its key. Versions are kept
    for so long as `keeps` after they were replaced, by the times of events: an older event gets null, and is
    `truncated`.

    An event may come before the row of its time does. With `early="wait"` it waits until the watermark has
    passed it. With "correct" it is answered at once, and for so long as `keeps` once more (`corrected`)
    whenever a row comes that was there at its time.
    """
    if early not in ("wait", "correct"):
        raise FlowError(f"early events can't {early!r}", hint='say early="wait" or early="correct"')
    if (watermark is None) == (early == "wait"):
        raise FlowError(
            "events that wait need a watermark, and those that are corrected have no use for one",
            hint='say watermark="30 seconds", or early="correct"',
        )
    mark = None if watermark is None else as_watermark(watermark)
    return AsOf(table, on, time, duration(keeps), name, since, mark, buckets)


@dataclass(frozen=True)
class AsOf:
    """What `as_of` returns; without a watermark events are answered at once and corrected."""

    table: DataFrame
    on: str
    time: str
    keeps: timedelta
    name: str
    since: str
    watermark: Watermark | None
    buckets: int

    def __call__(self, rows: DataFrame) -> DataFrame:
        self._check(rows)
        if not rows.isStreaming:
            found = self._replayed(rows if self.watermark is None else passed(rows, F.col(self.time)))
        else:
            ready = rows if self.watermark is None else self._held(rows, self.watermark)
            found = self._answered(ready)
        return found.select(f"{EVENT}.*", F.col(ROW).alias(self.name), TRUNCATED, CORRECTED)

    def _check(self, rows: DataFrame) -> None:
        refuse_missing(rows, (self.on, self.time), "the side of the events in a join as of a time")
        refuse_missing(self.table, (self.on, PLACE), "the table in a join as of a time")
        taken = {self.name, TRUNCATED, CORRECTED} & {*rows.columns}
        if taken:
            raise FlowError(f"events have a column {min(taken)!r} already", hint="choose another name=")

    def _held(self, rows: DataFrame, watermark: Watermark) -> DataFrame:
        return held(rows, (self.on,), self.time, watermark, buckets=self.buckets)

    def _answered(self, events: DataFrame) -> DataFrame:
        united = self._events(events).unionByName(self._versions(), allowMissingColumns=True)
        own = united.withColumn(CUT, F.lit(False)).withColumn(GONE, F.lit(False))
        placed = own.withColumn(HASH, row_hash(KEY, (KIND, *ORDER)))
        empty = empty_frame(placed, placed.schema)
        step = VersionsStep(empty, self.keeps // MICROSECOND, corrects=self.watermark is None)
        schema = StructType([placed.schema[EVENT], placed.schema[ROW]])
        schema = schema.add(TRUNCATED, BooleanType()).add(CORRECTED, BooleanType())
        kind = placed.schema[ROW].dataType.simpleString()
        name = f"versions of {kind}, in {self.buckets} buckets by {self.on}"
        state = StateDescription("versions", placed.schema, (KEY,), self.buckets)
        processor = Buckets(step, empty, name, state.lineage, streaming=True)
        bucket = key_bucket(KEY, self.buckets)
        return through_buckets(placed, bucket, processor, name, schema, state, times="None")

    def _events(self, rows: DataFrame) -> DataFrame:
        timed = rows.withColumn(TIME, required_time(self.time))
        event = F.struct(*(f"`{column}`" for column in rows.columns)).alias(EVENT)
        return timed.select(F.col(self.on).alias(KEY), *order_of(timed), F.lit(EVENT_KIND).alias(KIND), event)

    def _versions(self) -> DataFrame:
        written = F.col(PLACE)["written"]
        timed = self.table.withColumn(TIME, F.coalesce(F.col(self.since), written))
        row = whole_row(self.table).alias(ROW)
        return timed.select(F.col(self.on).alias(KEY), *order_of(timed), F.lit(VERSION_KIND).alias(KIND), row)

    def _replayed(self, rows: DataFrame) -> DataFrame:
        """All versions are there: the last one before an event in the order of times."""
        versions = self._versions().withColumn(ROW, F.struct(ROW))
        united = self._events(rows).unionByName(versions, allowMissingColumns=True)
        us, *place = ORDER
        so_far = Window.partitionBy(KEY).orderBy(us, KIND, *place)
        found = united.select(EVENT, KIND, KEY, F.last(ROW, ignorenulls=True).over(so_far).alias(ROW))
        row = F.when(F.col(KEY).isNotNull(), F.col(ROW)[ROW]).alias(ROW)
        told = found.where(F.col(KIND) == EVENT_KIND).select(EVENT, row)
        return told.select("*", F.lit(False).alias(TRUNCATED), F.lit(False).alias(CORRECTED))
