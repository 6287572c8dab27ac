"""Events with the row that a table had at their time."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from penstock.durations import MICROSECOND, duration
from penstock.errors import FlowError
from penstock.process.columns.keys import comparable, is_plain
from penstock.process.columns.lineage import lineage_of
from penstock.process.columns.names import CHANGE, ORDER, SOURCE
from penstock.process.columns.refusals import refuse_few_buckets, refuse_missing, refuse_unlike
from penstock.process.joins.versions import (
    CLOCK,
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
from penstock.process.state.buckets import Buckets
from penstock.process.state.description import StateDescription
from penstock.process.state.hashes import key_bucket, row_hash
from penstock.process.state.runs import GONE, HASH
from penstock.process.state.vectorised import empty_frame, through_buckets
from penstock.process.time.horizon import passed
from penstock.process.time.order import order_of, required_time, source_parts, timestamp
from penstock.process.time.reordering import reordered
from penstock.process.time.watermark import Watermark, as_watermark
from penstock.process.wire.table_changes import whole_row

Early = Literal["wait", "correct"]
_WRITTEN = "_source.written"


def as_of(
    table: DataFrame,
    *,
    on: str,
    time: str,
    history: str | timedelta,
    name: str = "row",
    since: str = _WRITTEN,
    early: Early = "wait",
    watermark: Watermark | str | timedelta | None = None,
    buckets: int = 16,
) -> "AsOf":
    """Put beside each event the row that a table had at the event's time, or null.

        payments.transform(joins.as_of(profiles, on="card", time="at", since="changed_at", history="1 day",
                                       watermark="30 seconds", name="profile"))

    `table` is the changes of a table as flows read them, or any rows with a time in their column `since`. A
    row holds from that time (or from when it was written; a deletion always from then, or from its commit if
    it was captured) until the next one of its key. Versions stay for so long as `history` after they were
    replaced, by the times of events: an older event gets null where nothing is left, and is `truncated`.

    An event may come before the row of its time does. With `early="wait"` it waits until the watermark has
    passed it. With "correct" it is answered at once, and for so long as `history` once more (`corrected`)
    whenever a row comes that was there at its time.
    """
    if early not in ("wait", "correct"):
        raise FlowError(f"early events can't {early!r}", hint='say early="wait" or early="correct"')
    if (watermark is None) == (early == "wait"):
        raise FlowError(
            "events that wait need a watermark, and those that are corrected have no use for one",
            hint='say watermark="30 seconds", or early="correct"',
        )
    refuse_few_buckets(buckets)
    mark = None if watermark is None else as_watermark(watermark)
    return AsOf(table, on, time, duration(history), name, since, mark, buckets)


@dataclass(frozen=True)
class AsOf:
    """What `as_of` returns; without a watermark events are answered at once and corrected."""

    table: DataFrame
    on: str
    time: str
    history: timedelta
    name: str
    since: str
    watermark: Watermark | None
    buckets: int

    def __call__(self, rows: DataFrame) -> DataFrame:
        self._check(rows)
        if not rows.isStreaming:
            found = self._replayed(rows if self.watermark is None else passed(rows, F.col(self.time)))
        else:
            ready = rows if self.watermark is None else self._reordered(rows, self.watermark)
            found = self._answered(ready)
        return found.select(f"{EVENT}.*", F.col(ROW).alias(self.name), TRUNCATED, CORRECTED)

    def _check(self, rows: DataFrame) -> None:
        refuse_missing(rows, (self.on, self.time), "the side of the events in a join as of a time")
        refuse_missing(self.table, (self.on, self.since.split(".")[0]), "the table in a join as of a time")
        refuse_unlike(self.on, rows.schema[self.on].dataType, self.on, self.table.schema[self.on].dataType)
        timestamp(rows, self.time)
        taken = {self.name, TRUNCATED, CORRECTED} & {*rows.columns}
        if taken:
            raise FlowError(f"events have a column {min(taken)!r} already", hint="choose another name=")

    def _reordered(self, rows: DataFrame, watermark: Watermark) -> DataFrame:
        return reordered(rows, (self.on,), self.time, watermark, buckets=self.buckets)

    def _answered(self, events: DataFrame) -> DataFrame:
        united = self._events(events).unionByName(self._versions(), allowMissingColumns=True)
        own = united.withColumn(CUT, F.lit(False)).withColumn(GONE, F.lit(False))
        placed = own.withColumn(HASH, row_hash(KEY, (KIND, *ORDER)))
        kept = placed.drop(CLOCK)
        empty = empty_frame(kept, kept.schema)
        step = VersionsStep(empty, self.history // MICROSECOND, corrects=self.watermark is None)
        schema = StructType([placed.schema[EVENT], placed.schema[ROW]])
        schema = schema.add(TRUNCATED, BooleanType()).add(CORRECTED, BooleanType())
        kind, key = placed.schema[ROW].dataType.simpleString(), self.table.schema[self.on].dataType
        encoded = "" if is_plain(key) else f" by {key.simpleString()}"
        title = f"versions of {kind}{encoded}"
        state = StateDescription.of(
            f"versions{encoded}", kept.schema, (KEY,), self.buckets, title=title, labels=(self.on,)
        )
        work = Buckets(step, empty, state.column, lineage_of(kept.schema), streaming=True)
        bucket = key_bucket(KEY, self.buckets)
        return through_buckets(placed, bucket, work, schema, state, times="None")

    def _events(self, rows: DataFrame) -> DataFrame:
        event = F.struct(*(f"`{name}`" for name in rows.columns)).alias(EVENT)
        time = required_time(rows, self.time)
        arrived = F.least(time, F.col(SOURCE)["written"]) if "written" in source_parts(rows) else time
        clock = F.unix_micros(arrived).alias(CLOCK)
        return rows.select(
            self._key(rows), *order_of(rows, time), F.lit(EVENT_KIND).alias(KIND), event, clock
        )

    def _versions(self) -> DataFrame:
        table = self.table
        if self._is_captured and self.since != _WRITTEN:
            table = table.where(F.col(CHANGE).isNotNull())  # a tombstone has no time but a later one
        row, kind = whole_row(table).alias(ROW), F.lit(VERSION_KIND).alias(KIND)
        order = order_of(table, self._valid_from(), numbered=True)
        return table.select(self._key(table), *order, kind, row)

    @property
    def _is_captured(self) -> bool:
        return CHANGE in self.table.columns

    def _valid_from(self) -> Column:
        """From when on a row holds; a deletion has no columns, so that it is from when it was written.

        One that was captured is from its commit.
        """
        since = timestamp(self.table, self.since)
        if self._is_captured:
            since = F.coalesce(since, F.col(CHANGE)["committed"])
        if "written" in source_parts(self.table):
            since = F.coalesce(since, F.col(SOURCE)["written"])
        missing = F.raise_error(F.lit(f"a row of a table has no time in column '{self.since}'"))
        return F.coalesce(since, missing.cast("timestamp"))

    def _key(self, rows: DataFrame) -> Column:
        return comparable(F.col(f"`{self.on}`"), rows.schema[self.on].dataType).alias(KEY)

    def _replayed(self, rows: DataFrame) -> DataFrame:
        """All versions are there: the last one before an event in the order of times."""
        versions = self._versions().withColumn(ROW, F.struct(ROW))
        united = self._events(rows).unionByName(versions, allowMissingColumns=True)
        us, *place = ORDER
        so_far = Window.partitionBy(KEY).orderBy(us, KIND, *place)
        found = united.select(EVENT, KIND, KEY, F.last(ROW, ignorenulls=True).over(so_far).alias(ROW))
        row = F.when(F.col(KEY).isNotNull(), F.col(ROW)[ROW]).alias(ROW)
        answered = found.where(F.col(KIND) == EVENT_KIND).select(EVENT, row)
        return answered.select("*", F.lit(False).alias(TRUNCATED), F.lit(False).alias(CORRECTED))
