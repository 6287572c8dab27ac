"""The recent events of a key beside each of its events, kept by Spark's own aggregates: no Python runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.durations import duration
from penstock.errors import FlowError
from penstock.process.keyed.tables import NOW, Tables
from penstock.process.pinned import ADDED, Pin, pinned
from penstock.process.source import PLACE
from penstock.process.windows.order import OFFSET, ORDER, PARTITION, TIME, US, order_of, required_time
from penstock.process.windows.watermark import Watermark, as_watermark

EVENT, RECENT, TRUNCATED = "event", "recent", "truncated"
REACH = "_reach"  # in the event: how far back the recent ones go, in microseconds
HELD = "_last_"  # how the column of what is kept begins
_SPAN, _KEY = "_span", "_key"
_STRETCH = 4  # times the time; the longer, the fewer events are in two stretches, and the longer state stays
_ROW_BY_ROW = "spark.sql.streaming.useStreamlineAggregator"
_MICROSECOND = timedelta(microseconds=1)


def recent(
    *,
    by: str | Sequence[str],
    time: str,
    within: str | timedelta,
    at_most: int = 256,
    keeps: Sequence[str] | None = None,
    watermark: Watermark | str | timedelta | None = None,
    bounded_keys: bool = False,
    tables: Mapping[str, DataFrame] | None = None,
) -> "Recent":
    """Give each event together with the events of its key within the time before it.

        recent = keyed.recent(by="card", time="at", within="10 minutes")
        payments.transform(recent).select("event.card", keyed.count(within="1 minute").alias("in_a_minute"))

    There is one result for each event, in the log's order of its key: `event`, and `recent`, which begins
    with the event itself and goes back in time: what came before it in the log and is dated after
    `event time - within` and not after the event. Of equal times the later in the log comes first. At most
    so many are kept of a key: `truncated` is set where older ones may be missing. Of the recent events all
    columns are there, or those that `keeps` names: every event costs as much as all that is kept of its key.

    State is kept for up to four times the time, and until the watermark has passed it (`within` behind,
    unless it is said); in a stream, what is later than that is dropped by Spark. With `bounded_keys` the
    state of a key stays for good, nothing is late, and there is no watermark.

    `tables` are changes of tables with the same key, as flows read them: the result has the latest row of
    each under its name, or null. As the rows stay, the keys are bounded by those of the tables.
    """
    keys = (by,) if isinstance(by, str) else tuple(by)
    length = duration(within)
    bounded = bounded_keys or bool(tables)
    if at_most < 1:
        raise FlowError(f"at most {at_most} recent events of a key are to be kept, expected at least 1")
    if bounded and watermark is not None:
        raise FlowError("the state of bounded keys stays: a watermark has no use", hint="leave it out")
    mark = None if bounded else as_watermark(length if watermark is None else watermark)
    if mark is not None and mark.future is not None:
        raise FlowError(
            "keyed state can't leave out events that are dated ahead",
            hint="send them to an outlet first, in a flow of their own",
        )
    kept = None if keeps is None else tuple(keeps)
    return Recent(keys, time, length, at_most, kept, mark, Tables(keys, dict(tables or {})))


@dataclass(frozen=True)
class Recent:
    """What `recent` returns; without a watermark the state of a key stays."""

    by: tuple[str, ...]
    time: str
    within: timedelta
    at_most: int
    keeps: tuple[str, ...] | None
    watermark: Watermark | None
    tables: Tables

    def __call__(self, rows: DataFrame) -> DataFrame:
        marked = self._marked(rows)
        pin = self._pin(rows)
        entry = F.struct(*pin.columns(), *order_of(marked))
        place = [PLACE] if PLACE in rows.columns else []
        placed = marked.select(
            *(F.col(f"`{name}`").alias(key) for key, name in zip(self._keys, self.by, strict=True)),
            TIME,
            F.struct(entry.alias(EVENT), *place, *pin.beside()).alias(NOW),
        )
        united = self.tables.beside(placed, self._keys)
        kept = self._as_state(united) if rows.isStreaming else self._by_windows(united)
        return self._told(kept.where(F.col(NOW).isNotNull()) if self.tables.names else kept, place, pin)

    def _pin(self, rows: DataFrame) -> Pin:
        event = StructType([each for each in rows.schema if each.name != PLACE])
        return pinned(f"event of {self._held}", event, streaming=rows.isStreaming)

    @property
    def _keys(self) -> list[str]:
        return [f"{_KEY}{number}" for number in range(len(self.by))]

    @property
    def _held(self) -> str:
        """The column of what is kept; a flow with another one can't go on with this one's state."""
        return f"{HELD}{self.at_most}_within_{self._us}_us"

    @property
    def _us(self) -> int:
        return self.within // _MICROSECOND

    def _marked(self, rows: DataFrame) -> DataFrame:
        time = required_time(self.time)
        if self.watermark is None or not rows.isStreaming:
            return rows.withColumn(TIME, time)
        return self.watermark.marked(rows, time)

    def _span(self) -> list[Column]:
        """State is kept in stretches that overlap by the time: one reaches back far enough from an event."""
        if self.watermark is None:
            return []
        size, every = (f"{count * self._us} microseconds" for count in (_STRETCH, _STRETCH - 1))
        return [F.window(TIME, size, every).alias(_SPAN)]

    def _newest(self) -> Column:
        """The newest events: one more than wanted, which tells whether there were more."""
        entry = F.col(NOW)[EVENT]
        order = F.struct(*(entry[part] for part in ORDER))
        order = F.when(entry.isNotNull(), order) if self.tables.names else order
        return F.call_function("max_by", self._kept(entry), order, F.lit(self.at_most + 1))

    def _kept(self, entry: Column) -> Column:
        """What is kept of an event."""
        if self.keeps is None:
            return entry
        return F.struct(*(entry[name].alias(name) for name in (*self.keeps, *ORDER)))

    def _as_state(self, placed: DataFrame) -> DataFrame:
        """One row comes out for each row that goes in."""
        refuse_whole_batches(placed)
        grouped = placed.groupBy(*self._keys, *self._span())
        newest, now = self._newest().alias(self._held), F.last(NOW).alias(NOW)
        return self._reaching_back(grouped.agg(newest, now, *self.tables.latest()))

    def _by_windows(self, placed: DataFrame) -> DataFrame:
        """The same aggregate over all that came before in the log."""
        spanned = placed.select("*", *self._span())
        keys = [*self._keys, *(name for name in spanned.columns if name == _SPAN)]
        log = [F.col(f"{NOW}.{EVENT}.{part}") for part in (PARTITION, OFFSET, US)]
        so_far = Window.partitionBy(*keys).orderBy(*log).rowsBetween(Window.unboundedPreceding, 0)
        rows = self.tables.latest(keys)
        return self._reaching_back(
            spanned.select(*keys, self._newest().over(so_far).alias(self._held), NOW, *rows)
        )

    def _reaching_back(self, kept: DataFrame) -> DataFrame:
        if self.watermark is None:
            return kept
        every = F.lit((_STRETCH - 1) * self._us).cast("long")
        first = F.col(f"{NOW}.{EVENT}.{US}") - F.lit(self._us)
        return kept.where(F.unix_micros(f"{_SPAN}.start") == first - F.pmod(first, every))

    def _told(self, kept: DataFrame, place: list[str], pin: Pin) -> DataFrame:
        event = F.col(NOW)[EVENT]
        first = event[US] - F.lit(self._us)
        near = F.filter(self._held, lambda other: (other[US] > first) & (other[US] <= event[US]))
        found = kept.select(NOW, self._held, near.alias(RECENT), *self.tables.names)
        itself = F.exists(RECENT, lambda other: _same_place(other, event))
        whole = F.when(itself, F.col(RECENT)).otherwise(F.concat(F.array(self._kept(event)), RECENT))
        full = F.size(self._held) > self.at_most
        cut = full & (F.element_at(self._held, -1)[US] > first)
        return found.select(
            pin.whole(event, F.col(NOW)[ADDED], *ORDER).withField(REACH, F.lit(self._us)).alias(EVENT),
            F.slice(whole, 1, self.at_most).alias(RECENT),
            cut.alias(TRUNCATED),
            *self.tables.rows(),
            *(F.col(NOW)[name].alias(name) for name in place),
        )


def refuse_whole_batches(rows: DataFrame) -> None:
    """Refuse a session in which an aggregate tells what it is after a batch, not after each row."""
    if rows.sparkSession.conf.get(_ROW_BY_ROW, "false") != "true":
        raise FlowError(
            "Spark would tell a key's last event of each batch only, not every event",
            hint=f"set {_ROW_BY_ROW} to true in the session, as penstock's own has it",
        )


def _same_place(one: Column, other: Column) -> Column:
    same = one[US] == other[US]
    return same & (one[PARTITION] == other[PARTITION]) & (one[OFFSET] == other[OFFSET])
