"""The recent events of a key beside each of its events, kept by Spark's own aggregates: no Python runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.durations import MICROSECOND, duration
from penstock.errors import FlowError
from penstock.process.columns.names import OFFSET, ORDER, PARTITION, SOURCE, TIME, US
from penstock.process.columns.refusals import refuse_missing
from penstock.process.keyed.tables import NOW, Tables
from penstock.process.state.pinned import ADDED, Pin, pinned
from penstock.process.time.order import order_of, required_time, source_parts
from penstock.process.time.watermark import Watermark, as_watermark

EVENT, RECENT, TRUNCATED = "event", "recent", "truncated"
REACH = "_reach"  # in the event: how far back the recent ones go, in microseconds
HELD = "_last_"  # how the column of what is kept begins
_SPAN, _KEY, _ARRIVAL = "_span", "_key", "_arrival"
_STRETCH = 4  # times the time; the longer, the fewer events are in two stretches, and the longer state stays
_ROW_BY_ROW = "spark.sql.streaming.useStreamlineAggregator"
_OWN = (
    SOURCE,
    TIME,
    *ORDER,
    REACH,
)  # columns that are no part of an event, also of one that was emitted before


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
    Events that a flow has not read have no place in a log: in a batch they are taken by their times, of equal
    ones in the order of the rows; in a stream, earlier events of exactly the same time have no order.

    State is kept for up to four times the time, and until the watermark has passed it (`within` behind,
    unless it is said); in a stream, Spark drops and counts what is later than that, and all that is dated
    before 1970, where its watermarks begin. With `bounded_keys` the state of a key stays for good, nothing is
    late, and there is no watermark.

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
            hint="send them to a side output first, in a flow of their own",
        )
    taken = {EVENT, RECENT, TRUNCATED, SOURCE} & {*(tables or {})}
    if taken:
        raise FlowError(f"{min(taken)!r} is a column of every result", hint="name the table otherwise")
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
        refuse_missing(rows, self.by, "what is looked at by its keys")
        own = [name for name in rows.columns if name not in _OWN]
        marked = self._marked(rows)
        pin = pinned(
            f"event of {self._held}",
            StructType([each for each in rows.schema if each.name in own]),
            streaming=rows.isStreaming,
        )
        entry = F.struct(*pin.columns(), *self._order(marked, own))
        source = [SOURCE] if SOURCE in rows.columns else []
        placed = marked.select(
            *(F.col(f"`{name}`").alias(key) for key, name in zip(self._keys, self.by, strict=True)),
            TIME,
            F.struct(entry.alias(EVENT), *source, *pin.beside()).alias(NOW),
        )
        united = self.tables.beside(placed, self._keys)
        kept = self._as_state(united) if rows.isStreaming else self._by_windows(united, source_parts(rows))
        events = kept.where(F.col(NOW).isNotNull()) if self.tables.names else kept
        held = [name for name in pin.held if self.keeps is None or name in self.keeps]
        return self._results(events, _hashable(rows, held), source, pin)

    @property
    def _keys(self) -> list[str]:
        return [f"{_KEY}{number}" for number in range(len(self.by))]

    @property
    def _held(self) -> str:
        """The column of what is kept; a flow with another one can't go on with this one's state."""
        return f"{HELD}{self.at_most}_within_{self._us}_us"

    @property
    def _us(self) -> int:
        return self.within // MICROSECOND

    def _marked(self, rows: DataFrame) -> DataFrame:
        time = required_time(rows, self.time)
        if self.watermark is None or not rows.isStreaming:
            return rows.withColumn(TIME, time)
        return self.watermark.marked(rows, time)

    def _order(self, rows: DataFrame, own: list[str]) -> list[Column]:
        """The order; of events in a stream that have no place, what they hold makes it the same each time."""
        order = order_of(rows, numbered=True)
        if rows.isStreaming and SOURCE not in rows.columns:
            content = [f"`{name}`" for name in _hashable(rows, own)]
            return [*order[:-1], F.xxhash64(*content).alias(OFFSET)]
        return order

    def _span(self) -> list[Column]:
        """State is kept in stretches that overlap by the time: one reaches back far enough from an event."""
        if self.watermark is None:
            return []
        size, every = (f"{count * self._us} microseconds" for count in (_STRETCH, _STRETCH - 1))
        return [F.window(TIME, size, every).alias(_SPAN)]

    def _newest(self) -> Column:
        """The newest events: one more than wanted, which shows whether there were more."""
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

    def _by_windows(self, placed: DataFrame, parts: list[str]) -> DataFrame:
        """The same aggregate over all that came before in the log."""
        spanned = placed.select("*", *self._span())
        keys = [*self._keys, *(name for name in spanned.columns if name == _SPAN)]
        logged = spanned.select("*", _arrival(keys, parts).alias(_ARRIVAL))
        log = [f"{NOW}.{EVENT}.{part}" for part in ((PARTITION, OFFSET, US) if parts else (US, OFFSET))]
        so_far = Window.partitionBy(*keys).orderBy(_ARRIVAL, *log)
        newest = self._newest().over(so_far.rowsBetween(Window.unboundedPreceding, 0))
        rows = self.tables.latest(keys)
        return self._reaching_back(logged.select(*keys, newest.alias(self._held), NOW, *rows))

    def _reaching_back(self, kept: DataFrame) -> DataFrame:
        if self.watermark is None:
            return kept
        every = F.lit((_STRETCH - 1) * self._us).cast("long")
        first = F.col(f"{NOW}.{EVENT}.{US}") - F.lit(self._us)
        return kept.where(F.unix_micros(f"{_SPAN}.start") == first - F.pmod(first, every))

    def _results(self, kept: DataFrame, compared: list[str], source: list[str], pin: Pin) -> DataFrame:
        event = F.col(NOW)[EVENT]
        first = event[US] - F.lit(self._us)
        near = F.filter(self._held, lambda other: (other[US] > first) & (other[US] <= event[US]))
        found = kept.select(NOW, self._held, near.alias(RECENT), *self.tables.names)
        full = F.size(self._held) > self.at_most
        cut = full & (F.element_at(self._held, -1)[US] > first)
        return found.select(
            pin.whole(event, F.col(NOW)[ADDED], *ORDER).withField(REACH, F.lit(self._us)).alias(EVENT),
            F.slice(self._with_itself_first(event, compared), 1, self.at_most).alias(RECENT),
            cut.alias(TRUNCATED),
            *self.tables.rows(),
            *(F.col(NOW)[name].alias(name) for name in source),
        )

    def _with_itself_first(self, event: Column, compared: list[str]) -> Column:
        """What is recent, in which the event may be anywhere among those of its time, or nowhere.

        Events of one place (of united topics, exploded ones, or without any) are distinguished by what they
        hold; where that is the same too, it does not matter which is which.
        """

        def itself(other: Column) -> Column:
            same = F.lit(True)
            for name in (*ORDER, *compared):
                same &= other[name].eqNullSafe(event[name])
            return same

        number = F.array_position(F.transform(RECENT, itself), F.lit(True)) - 1
        others = F.filter(RECENT, lambda _, place: place != number)
        moved = F.concat(F.array(self._kept(event)), others)
        return F.when(F.coalesce(itself(F.get(RECENT, 0)), F.lit(False)), F.col(RECENT)).otherwise(moved)


def refuse_whole_batches(rows: DataFrame) -> None:
    """Refuse a session in which an aggregate emits after a batch, not after each row."""
    if rows.sparkSession.conf.get(_ROW_BY_ROW, "false") != "true":
        raise FlowError(
            "Spark would emit a key's last event of each batch only, not every event",
            hint=f"set {_ROW_BY_ROW} to true in the session, as penstock's own has it",
        )


def _arrival(keys: list[str], parts: list[str]) -> Column:
    """When events were written, or rather the latest such time so far, which keeps a partition's order.

    Partitions, of united topics or of one that was given more, have no other order in common.
    """
    if "written" not in parts:
        return F.lit(0)
    entry = F.col(f"{NOW}.{EVENT}")
    topic = [F.col(f"{NOW}.{SOURCE}.topic")] if "topic" in parts else []
    so_far = Window.partitionBy(*keys, *topic, entry[PARTITION]).orderBy(entry[OFFSET])
    return F.max(f"{NOW}.{SOURCE}.written").over(so_far)


def _hashable(rows: DataFrame, names: list[str]) -> list[str]:
    """The columns that Spark can hash and compare: it can't where there is a map or a variant in them."""
    kinds = {name: rows.schema[name].dataType.simpleString() for name in names}
    return [name for name, kind in kinds.items() if "map<" not in kind and "variant" not in kind]
