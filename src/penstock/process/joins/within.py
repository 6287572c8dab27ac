"""Two streams, joined where events of the same key happened near each other; Spark's own join."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, NumericType, StringType

from penstock.durations import duration
from penstock.errors import FlowError
from penstock.process.refusals import refuse_missing, refuse_unlike
from penstock.process.source import PLACE
from penstock.process.windows.order import TIME
from penstock.process.windows.shape import MICROSECOND
from penstock.process.windows.watermark import Watermark, as_watermark

How = Literal["inner", "left", "right", "full"]
_SIDES, _KNOWN = ("_left", "_right"), "_known"


def within(
    other: DataFrame,
    *,
    on: str | Sequence[str],
    time: str | tuple[str, str],
    watermark: Watermark | str | timedelta,
    before: str | timedelta | None = None,
    after: str | timedelta | None = None,
    how: How = "inner",
    names: tuple[str, str] = ("left", "right"),
) -> "Within":
    """Join a stream with another where keys are equal and times near: up to `before` and `after` its own.

        bought = clicks.transform(
            joins.within(impressions, on="ad", time="at", before="1 hour", how="left",
                         watermark="10 minutes", names=("click", "impression")))

    A row of the result has the columns of the key and the two events under their names. With "left", "right"
    or "full" an event of that side that has found no other is told with null beside it, when the watermark
    says that none can come any more; one whose key or time is not known, at once. Either side may come first;
    what can't be joined any more is forgotten. `time` names the column of the times, or one for each side.
    """
    keys = (on,) if isinstance(on, str) else tuple(on)
    if how not in get_args(How):
        raise FlowError(f"there is no {how!r} join", hint=f"choose one of {', '.join(get_args(How))}")
    if before is None and after is None:
        raise FlowError("a join of streams has no limit in time", hint='say before="1 hour", after=… or both')
    reach = tuple(timedelta(0) if each is None else duration(each) for each in (before, after))
    times = (time, time) if isinstance(time, str) else time
    if len({*names, *keys}) < 2 + len(keys):
        raise FlowError(f"the names {names[0]!r} and {names[1]!r} are not free", hint="choose others: names=")
    return Within(other, keys, times, as_watermark(watermark), (reach[0], reach[1]), how, names)


@dataclass(frozen=True)
class Within:
    """What `within` returns."""

    other: DataFrame
    on: tuple[str, ...]
    times: tuple[str, str]
    watermark: Watermark
    reach: tuple[timedelta, timedelta]
    how: How
    names: tuple[str, str]

    def __call__(self, rows: DataFrame) -> DataFrame:
        left, right = (self._side(frame, side) for side, frame in enumerate((rows, self.other)))
        for name in self.on:
            refuse_unlike(name, rows.schema[name].dataType, name, self.other.schema[name].dataType)
        joined = left.join(right, self._near(), self.how)
        keys = [F.coalesce(*(F.col(event)[name] for event in self.names)).alias(name) for name in self.on]
        return joined.select(*keys, *self.names, *self._place(rows))

    def _side(self, rows: DataFrame, side: int) -> DataFrame:
        """One side: its key, the time that Spark makes the watermark of, the event, and if it can be joined.

        The key is never null: where it may be null, Spark leaves out what has none before it looks at the
        time, which would stop the watermark of a quiet stream.
        """
        refuse_missing(rows, (*self.on, self.times[side]), f"the {self.names[side]!r} side of a join")
        marked = self.watermark.marked(rows, F.col(self.times[side]))
        keys = [
            _never_null(F.col(f"`{name}`"), rows.schema[name].dataType).alias(key)
            for name, key in zip(self.on, self._keys(side), strict=True)
        ]
        event = F.struct(*(f"`{name}`" for name in rows.columns)).alias(self.names[side])
        time, known = F.col(TIME).alias(_SIDES[side] + TIME), self._known().alias(_SIDES[side] + _KNOWN)
        sided = marked.select(*keys, time, event, known)
        return sided if self._told(side) else sided.where(_SIDES[side] + _KNOWN)

    def _keys(self, side: int) -> list[str]:
        return [f"{_SIDES[side]}_key{place}" for place in range(len(self.on))]

    def _told(self, side: int) -> bool:
        """Whether events of a side are told although they found no other."""
        return self.how in ("full", ("left", "right")[side])

    def _known(self) -> Column:
        """Whether an event can find another: its time and all of its key are known.

        One condition about both, and `greatest` instead of `|`, which Spark takes apart: it would ask for the
        key alone before the watermark, and no tick of a quiet stream has one.
        """
        return ~F.greatest(F.col(TIME).isNull(), *(F.col(f"`{name}`").isNull() for name in self.on))

    def _near(self) -> Column:
        left, right = (F.col(side + TIME) for side in _SIDES)
        before, after = (F.expr(f"interval {each // MICROSECOND} microseconds") for each in self.reach)
        near = (right >= left - before) & (right <= left + after)
        for one, other in zip(self._keys(0), self._keys(1), strict=True):
            near &= F.col(one) == F.col(other)
        for side in (0, 1):
            if self._told(side):
                near &= F.col(_SIDES[side] + _KNOWN)
        return near

    def _place(self, rows: DataFrame) -> list[Column]:
        """Where the result came from: the place of the event that was joined, or of the one that is there."""
        if not all(PLACE in frame.columns for frame in (rows, self.other)):
            return []
        return [F.coalesce(*(F.col(name)[PLACE] for name in self.names)).alias(PLACE)]


def _never_null(key: Column, type: DataType) -> Column:
    """The key where it is known, and something that Spark knows not to be null where it is not."""
    if isinstance(type, BooleanType | NumericType | StringType):
        return F.coalesce(key, F.lit(0).cast(type))
    return F.struct(key)
