"""Windows as Spark's own aggregates: any aggregate, no late policy."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import FlowError
from penstock.process.columns.names import END, FINAL, START, TIME
from penstock.process.columns.naming import quoted, refuse_taken
from penstock.process.time.horizon import passed
from penstock.process.windows.kept import KIND, ON_TIME
from penstock.process.windows.shape import Fixed, Session

RANK = "rank"
_WINDOW, _BEST, _ROW = "_window", "_best", "_row"


def windowed(
    timed: DataFrame, shape: Fixed | Session, by: tuple[str, ...], aggregates: Sequence[Column], kind: str
) -> DataFrame:
    """Return the results of windows over rows with a watermark; `kind` is what they are called."""
    grouped = _grouped(timed, shape, by, aggregates)
    names = grouped.columns[len(by) + 1 :]
    _refuse_clash(by, names, (START, END, KIND))
    results = map(quoted, names)
    return _over(grouped.select(*map(quoted, by), *_bounds(kind), F.lit(kind).alias(KIND), *results), kind)


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
    names = [*by, *grouped.columns[len(by) + 1 :]]
    _refuse_clash(by, names[len(by) :], (START, END, KIND, RANK))
    if order not in names[len(by) :]:
        raise FlowError(f"a ranking by {order!r}, which is none of its values", hint=f"name one {order!r}")
    row = F.struct(*map(quoted, names))
    first = F.struct(quoted(order), *map(quoted, by))
    best = grouped.groupBy(_WINDOW).agg(F.call_function("max_by", row, first, F.lit(count)).alias(_BEST))
    ranked = best.select(
        *_bounds(kind), F.lit(kind).alias(KIND), _BEST, F.posexplode(_BEST).alias("_place", _ROW)
    )
    greater = F.filter(_BEST, lambda other: other[order] > F.col(_ROW)[order])
    rank = (F.size(greater) + 1).alias(RANK)
    return _over(ranked.select(*_places(by), START, END, KIND, rank, *_places(names[len(by) :])), kind)


def _grouped(
    timed: DataFrame, shape: Fixed | Session, by: tuple[str, ...], aggregates: Sequence[Column]
) -> DataFrame:
    return timed.groupBy(*map(quoted, by), shape.column(F.col(TIME)).alias(_WINDOW)).agg(*aggregates)


def _over(results: DataFrame, kind: str) -> DataFrame:
    """Leave out windows that are not over, in a replay that is compared with a stream."""
    return passed(results, F.col(END)) if kind == ON_TIME else results


def _refuse_clash(by: tuple[str, ...], names: Sequence[str], own: tuple[str, ...]) -> None:
    refuse_taken(by, own, "key")
    refuse_taken(names, (*own, *by), "aggregate")
    for name in names:
        if names.count(name) > 1:
            raise FlowError(f"two aggregates are called {name!r}", hint="give each a name: .alias('…')")


def _bounds(kind: str) -> list[Column]:
    start, end = (F.col(_WINDOW)[place] for place in (START, END))
    return [start.alias(START), end.alias(END, metadata={FINAL: kind == ON_TIME})]


def _places(names: Sequence[str]) -> list[Column]:
    return [F.col(_ROW)[name].alias(name) for name in names]
