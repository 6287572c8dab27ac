"""Windows as Spark's own aggregates: any aggregate, no late policy."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.process.windows.kept import END, KIND, ON_TIME, START
from penstock.process.windows.order import TIME
from penstock.process.windows.shape import Fixed, Session

RANK = "rank"
FINAL = "penstock.final"  # in the metadata of `end`: a result is told once the watermark has passed it
_WINDOW, _BEST, _ROW = "_window", "_best", "_row"


def windowed(
    timed: DataFrame, shape: Fixed | Session, by: tuple[str, ...], aggregates: Sequence[Column], kind: str
) -> DataFrame:
    """Return the results of windows over rows with a watermark; `kind` is what they are called."""
    grouped = _grouped(timed, shape, by, aggregates)
    names = [F.col(f"`{name}`") for name in grouped.columns[len(by) + 1 :]]
    return grouped.select(*by, *_bounds(kind), F.lit(kind).alias(KIND), *names)


def ranked(
    timed: DataFrame,
    shape: Fixed | Session,
    by: tuple[str, ...],
    aggregates: Sequence[Column],
    kind: str,
    *,
    count: int,
    order: str,
) -> DataFrame:
    """Return the keys of each window in which a value is greatest, with their rank."""
    grouped = _grouped(timed, shape, by, aggregates)
    names = [name for name in grouped.columns if name != _WINDOW]
    row = F.struct(*(F.col(f"`{name}`") for name in names))
    first = F.struct(F.col(f"`{order}`"), *by)
    best = grouped.groupBy(_WINDOW).agg(F.call_function("max_by", row, first, F.lit(count)).alias(_BEST))
    told = best.select(
        *_bounds(kind), F.lit(kind).alias(KIND), _BEST, F.posexplode(_BEST).alias("_place", _ROW)
    )
    greater = F.filter(_BEST, lambda other: other[order] > F.col(_ROW)[order])
    rank = (F.size(greater) + 1).alias(RANK)
    return told.select(*_places(by), START, END, KIND, rank, *_places(names[len(by) :]))


def _grouped(
    timed: DataFrame, shape: Fixed | Session, by: tuple[str, ...], aggregates: Sequence[Column]
) -> DataFrame:
    return timed.groupBy(*by, shape.column(F.col(TIME)).alias(_WINDOW)).agg(*aggregates)


def _bounds(kind: str) -> list[Column]:
    start, end = (F.col(_WINDOW)[place] for place in (START, END))
    return [start.alias(START), end.alias(END, metadata={FINAL: kind == ON_TIME})]


def _places(names: Sequence[str]) -> list[Column]:
    return [F.col(_ROW)[name].alias(name) for name in names]
