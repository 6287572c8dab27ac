"""State of a key as the user declares it, and a function over columns that changes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StructType, TimestampType

from penstock.durations import MICROSECOND, duration
from penstock.errors import FlowError
from penstock.process.columns.lineage import lineage_of
from penstock.process.columns.names import TIME
from penstock.process.columns.refusals import refuse_missing
from penstock.process.keyed.function import Frames, KeyedFunction, OverColumns
from penstock.process.keyed.step import DUE, KeyedStep
from penstock.process.state.buckets import Buckets
from penstock.process.state.description import StateDescription
from penstock.process.state.runs import HASH
from penstock.process.state.vectorised import empty_frame, through_buckets
from penstock.process.time.order import order_of, required_time
from penstock.process.time.watermark import Watermark, as_watermark

Schema = StructType | str


def stateful(
    function: OverColumns,
    *,
    by: str | Sequence[str],
    state: Schema,
    returns: Schema,
    time: str | None = None,
    watermark: Watermark | str | timedelta | None = None,
    ttl: str | timedelta | None = None,
    timer: str | None = None,
    frames: Frames = "polars",
    buckets: int = 16,
) -> "Stateful":
    """Keep state of each key, changed by a function over columns, which is called once for many keys.

        def spent(payments, state):
            sums = payments.group_by("card").agg(pl.col("amount").sum())
            new = state.join(sums, on="card").select("card", pl.col("total").fill_null(0) + pl.col("amount"))
            return new, new

        payments.transform(keyed.stateful(spent, by="card", state="total double",
                                          returns="card string, total double"))

    The function gets rows in the log's order, and the state of their keys: a row for each, null in the
    columns that `state` declares where there is none yet. It returns the new state, at most a row for
    each key (a key that is left out is forgotten), and the results, which may be of keys or of events. How
    rows are cut into calls is not to matter to it. They are frames of Polars, or what `frames` names.

    State that no event has touched for `ttl` is forgotten, by the times of events. `timer` names a timestamp
    of the state: when the watermark passes it, the timer fires, and the function is called with the key,
    whose row says `due`.
    """
    keys = (by,) if isinstance(by, str) else tuple(by)
    if buckets < 1 or not keys:
        raise FlowError(f"state by {keys} in {buckets} buckets: expected a key and at least one bucket")
    if frames not in ("polars", "pandas", "pyarrow"):
        raise FlowError(f"there are no frames of {frames!r}", hint="choose polars, pandas or pyarrow")
    if (ttl or timer) and (time is None or watermark is None):
        raise FlowError("state that ends or wakes needs to know the time", hint="say time= and watermark=")
    limit = as_watermark(watermark) if watermark is not None else None
    return Stateful(
        function, keys, state, returns, time, limit, duration(ttl) if ttl else None, timer, frames, buckets
    )


@dataclass(frozen=True)
class Stateful:
    """What `stateful` returns."""

    function: OverColumns
    by: tuple[str, ...]
    state: Schema
    returns: Schema
    time: str | None
    watermark: Watermark | None
    ttl: timedelta | None
    timer: str | None
    frames: Frames
    buckets: int

    def __call__(self, rows: DataFrame) -> DataFrame:
        refuse_missing(rows, self.by, "what has state by its keys")
        taken = self._taken(rows)
        state, returns = self._state(rows), _schema(self.returns).toNullable()
        no_state, no_results, empty = (empty_frame(rows, each) for each in (state, returns, taken.schema))
        function = KeyedFunction(self.function, self.by, no_state, no_results, self.frames)
        step = KeyedStep(function, self.ttl // MICROSECOND if self.ttl else None, self.timer)
        described = self._described(state)
        work = Buckets(step, empty, described.column, lineage_of(state), streaming=rows.isStreaming)
        bucket = F.pmod(F.col(HASH), F.lit(self.buckets))
        times = "EventTime" if step.timed else "None"
        return through_buckets(taken, bucket, work, returns, described, times=times)

    def _taken(self, rows: DataFrame) -> DataFrame:
        if self.time is None or self.watermark is None:
            timed = rows.withColumn(TIME, F.lit(None).cast("timestamp"))
        else:
            timed = self.watermark.marked(rows, required_time(rows, self.time))
        columns = (f"`{name}`" for name in rows.columns)
        keys = (_no_nan(rows, name) for name in self.by)
        return timed.select(*columns, F.xxhash64(*keys).alias(HASH), *order_of(timed, numbered=True))

    def _state(self, rows: DataFrame) -> StructType:
        """The columns of the key, and what is declared."""
        declared = _schema(self.state)
        taken = {*self.by, DUE} & {*declared.names}
        if taken:
            raise FlowError(
                f"keyed state declares the column {min(taken)!r}",
                hint=f"the key is part of the state anyway, and {DUE!r} is an argument of the function",
            )
        if self.timer and self.timer not in declared.names:
            raise FlowError(
                f"the timer {self.timer!r} is no column of the state", hint=f"declared are {declared.names}"
            )
        if self.timer and not isinstance(declared[self.timer].dataType, TimestampType):
            kind = declared[self.timer].dataType.simpleString()
            raise FlowError(f"the timer {self.timer!r} is {kind}, expected a timestamp")
        return StructType([*(rows.schema[name] for name in self.by), *declared]).toNullable()

    @property
    def _kind(self) -> str:
        ends = " that ends" if self.ttl else ""
        wakes = f" and wakes at {self.timer}" if self.timer else ""
        return f"state{ends}{wakes}"

    def _described(self, state: StructType) -> StateDescription:
        columns = "; ".join(f"{field.name} {field.dataType.simpleString()}" for field in state)
        title = f"{self._kind} of {{{columns}}}"
        return StateDescription.of(self._kind, state, self.by, self.buckets, declared=True, title=title)


def _schema(given: Schema) -> StructType:
    return given if isinstance(given, StructType) else cast(StructType, StructType.fromDDL(given))


def _no_nan(rows: DataFrame, name: str) -> Column:
    """A key; not NaN, which the joins of a function over frames would find or not, as it happens."""
    key = F.col(f"`{name}`")
    if not isinstance(rows.schema[name].dataType, FloatType | DoubleType):
        return key
    message = f"a key in column '{name}' is NaN; cast it to a text, or leave such events out"
    return F.when(F.isnan(key), F.raise_error(F.lit(message))).otherwise(key)
