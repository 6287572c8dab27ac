"""Two streams, joined where events of the same key happened near each other; Spark's own join."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, NumericType, StringType

from penstock.durations import MICROSECOND, duration
from penstock.errors import FlowError
from penstock.process.columns.names import JOINED, POSITION, POSITION_TYPE, SOURCE, TIME
from penstock.process.columns.refusals import refuse_missing, refuse_unlike
from penstock.process.time.order import timestamp
from penstock.process.time.watermark import Watermark, as_watermark

How = Literal["inner", "left", "right", "full"]
Reach = str | timedelta | tuple[str | timedelta, str | timedelta]
_ZERO = re.compile(r"\s*0+(\.0+)?\s*(milliseconds?|ms|seconds?|s|minutes?|min|hours?|h|days?|d)\s*")
_SIDES, _KNOWN = ("_left", "_right"), "_known"


def within(
    other: DataFrame,
    *,
    on: str | Sequence[str],
    time: str | tuple[str, str],
    watermark: Watermark | str | timedelta,
    before: Reach | None = None,
    after: Reach | None = None,
    how: How = "inner",
    names: tuple[str, str] = ("left", "right"),
) -> "Within":
    """Join a stream with another where keys are equal and times near: up to `before` and `after` its own.

        bought = clicks.transform(
            joins.within(impressions, on="ad", time="at", before="1 hour", how="left",
                         watermark="10 minutes", names=("click", "impression")))

    A row of the result has the columns of the key and the two events under their names. With "left", "right"
    or "full" an event of that side that has found no other is emitted with null beside it, when the watermark
    says that none can come any more; one whose key or time is not known, at once. Either side may come first;
    what can't be joined any more is forgotten. `time` names the column of the times, or one for each side.

    `before="0 seconds"` joins events of equal times. A pair of lengths leaves out what is nearer:
    `after=("5 seconds", "10 seconds")` joins what happened between 5 and 10 seconds afterwards. In a stream,
    Spark drops and counts what is dated before 1970, where its watermarks begin.
    """
    keys = (on,) if isinstance(on, str) else tuple(on)
    if how not in get_args(How):
        raise FlowError(f"there is no {how!r} join", hint=f"choose one of {', '.join(get_args(How))}")
    reach = reach_of(before, after)
    times = (time, time) if isinstance(time, str) else time
    if len({*names, *keys, SOURCE}) < 3 + len(keys):
        raise FlowError(f"the names {names[0]!r} and {names[1]!r} are not free", hint="choose others: names=")
    return Within(other, keys, times, as_watermark(watermark), reach, how, names)


def reach_of(before: Reach | None, after: Reach | None) -> tuple[timedelta, timedelta]:
    """How far the other event may be before this one, and how far after; what is negative is the other way.

    >>> [each.total_seconds() for each in reach_of(None, ("5 seconds", "10 seconds"))]
    [-5.0, 10.0]
    """
    if before is None and after is None:
        raise FlowError("a join of streams has no limit in time", hint='say before="1 hour", after=… or both')
    pairs = [_nearest_and_furthest(each) for each in (before, after)]
    (near_before, far_before), (near_after, far_after) = pairs
    if not isinstance(before, tuple) and not isinstance(after, tuple):
        return far_before, far_after
    if before is not None and after is not None:
        raise FlowError(
            f"a join of streams from {before!r} before to {after!r} after leaves out what is between",
            hint="say one of them, or join twice and unite what was found",
        )
    return (far_before, -near_before) if after is None else (-near_after, far_after)


def _nearest_and_furthest(reach: Reach | None) -> tuple[timedelta, timedelta]:
    if not isinstance(reach, tuple):
        return timedelta(0), timedelta(0) if reach is None else _length(reach)
    nearest, furthest = (_length(each) for each in reach)
    if nearest > furthest:
        raise FlowError(f"a join of streams reaches from {reach[0]!r} to {reach[1]!r}, which is less")
    return nearest, furthest


def _length(value: str | timedelta) -> timedelta:
    """A length of time, which may be none at all."""
    zero = value == timedelta(0) if isinstance(value, timedelta) else _ZERO.fullmatch(value)
    return timedelta(0) if zero else duration(value)


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
        return joined.select(*keys, *self.names, *self._source(rows))

    def _side(self, rows: DataFrame, side: int) -> DataFrame:
        """One side: its key, the time that Spark makes the watermark of, the event, and if it can be joined.

        The key is never null: where it may be null, Spark leaves out what has none before it looks at the
        time, which would stop the watermark of a quiet stream.
        """
        refuse_missing(rows, (*self.on, self.times[side]), f"the {self.names[side]!r} side of a join")
        marked = self.watermark.marked(rows, timestamp(rows, self.times[side]))
        keys = [
            _never_null(F.col(f"`{name}`"), rows.schema[name].dataType).alias(key)
            for name, key in zip(self.on, self._keys(side), strict=True)
        ]
        event = F.struct(*(f"`{name}`" for name in rows.columns)).alias(self.names[side])
        time, known = F.col(TIME).alias(_SIDES[side] + TIME), self._known().alias(_SIDES[side] + _KNOWN)
        sided = marked.select(*keys, time, event, known)
        return sided if self._emits_unmatched(side) else sided.where(_SIDES[side] + _KNOWN)

    def _keys(self, side: int) -> list[str]:
        return [f"{_SIDES[side]}_key{place}" for place in range(len(self.on))]

    def _emits_unmatched(self, side: int) -> bool:
        """Whether events of a side are emitted although they found no other."""
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
            if self._emits_unmatched(side):
                near &= F.col(_SIDES[side] + _KNOWN)
        return near

    def _source(self, rows: DataFrame) -> list[Column]:
        """Where the result came from: the place of the event that was joined, or of the one that is there,
        and those of all others that it is of: two pairs with one event may well give the same row.
        """
        frames = (rows, self.other)
        if not all(SOURCE in frame.columns for frame in frames):
            return []
        sources = [F.col(name)[SOURCE] for name in self.names]
        others = [place for each in zip(sources, frames, strict=True) for place in _further_places(*each)]
        joined = F.concat(F.array(_second_place(*sources)), *others)
        source = F.coalesce(*(each.dropFields(JOINED) for each in sources))
        return [source.withField(JOINED, joined).alias(SOURCE)]


def _second_place(left: Column, right: Column) -> Column:
    """The place of the right event where the left one is there, too."""
    place = F.struct(*(right[part].alias(part) for part in POSITION))
    return F.when(left.isNotNull() & right.isNotNull(), place)


def _further_places(source: Column, rows: DataFrame) -> list[Column]:
    """The places of the events that were joined before."""
    if JOINED not in rows.select(f"{SOURCE}.*").columns:
        return []
    return [F.coalesce(source[JOINED], F.array().cast(f"array<{POSITION_TYPE}>"))]


def _never_null(key: Column, type: DataType) -> Column:
    """The key where it is known, and something that Spark knows not to be null where it is not."""
    if isinstance(type, BooleanType | NumericType | StringType):
        return F.coalesce(key, F.lit(0).cast(type))
    return F.struct(key)
