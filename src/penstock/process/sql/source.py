"""Where results come from: `_source` goes with the rows of a query that does not select it."""

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from penstock.process.columns.names import JOINED, POSITION, POSITION_TYPE, SOURCE
from penstock.process.spark.java import Java
from penstock.process.sql.planning import column_of, frame_of, plan_of, project, with_children
from penstock.process.sql.tree import items, kind, number, output

_PASSING = ("Filter", "SubqueryAlias", "ResolvedHint", "Generate")


class _Sourced(NamedTuple):
    """A plan whose rows have the place of their event, and the column that it is in.

    `joined` are columns with the places of further events, which the rows of a join of streams are of.
    """

    plan: Java
    column: Java
    joined: tuple[Java, ...] = ()


def with_source(spark: SparkSession, plan: Java) -> Java:
    """Return a plan whose rows say which events they are of; an aggregate's are not.

    The id of a result is made of it: two events, or two pairs of events, may well give the same row.
    """
    found = _sourced(spark, plan)
    if found is None:
        return plan
    if not found.joined:
        return found.plan
    places = F.array(*(column_of(spark, each) for each in found.joined))
    source = column_of(spark, found.column).withField(JOINED, places).alias(SOURCE)
    others = [each for each in output(plan) if number(each) != number(found.column)]
    return _with(spark, found.plan, others, [source])


def _sourced(spark: SparkSession, plan: Java) -> _Sourced | None:
    if kind(plan) == "Join":
        return _of_join(spark, plan)
    if kind(plan) == "Union":
        return _of_union(spark, plan)
    below = _sourced(spark, plan.child()) if kind(plan) in (*_PASSING, "Project") else None
    own = _own(plan)
    if own is not None and (below is None or not below.joined):
        return _Sourced(plan, own)
    if below is None:
        return None
    if kind(plan) == "Project":
        return _of_project(spark, plan, below, own)
    return _Sourced(with_children(spark, plan, [below.plan]), own or below.column, below.joined)


def _of_project(spark: SparkSession, plan: Java, below: _Sourced, own: Java | None) -> _Sourced:
    """The columns that are selected and the places; all of them, if it selects a `_source` by itself."""
    if own is not None and number(own) != number(below.column):
        below = _placed(spark, below, own)
    more = [*([] if own is not None else [below.column]), *below.joined]
    made = project(spark, [*items(plan.projectList()), *more], below.plan)
    return _Sourced(made, own or below.column, below.joined)


def _of_join(spark: SparkSession, join: Java) -> _Sourced | None:
    """The event that is always there, the left one if both are, and beside it the other ones."""
    sides = list(items(join.children()))
    how = str(join.joinType())
    found = [_sourced(spark, each) for each in sides]
    first = int(how == "RightOuter" or (how in ("Inner", "Cross") and found[0] is None))
    main, other = found[first], found[1 - first]
    if main is None:
        return None
    sides[first] = main.plan
    joined = main.joined
    if other is not None and how in ("Inner", "Cross", "LeftOuter", "RightOuter"):
        placed = _placed(spark, other, other.column)
        sides[1 - first] = placed.plan
        joined += placed.joined
    return _Sourced(with_children(spark, join, sides), main.column, joined)


def _of_union(spark: SparkSession, union: Java) -> _Sourced | None:
    """The columns of a union go by their places: all of its parts have one of their own, or none has."""
    branches, own = list(items(union.children())), _own(union)
    found = [_sourced(spark, each) for each in branches]
    parts = [each for each in found if each is not None]
    are_alike = len({_own(each) is None for each in branches}) == 1
    most = max((len(each.joined) for each in parts), default=0)
    if len(parts) < len(branches) or not are_alike or (own is not None and not most):
        return None if own is None else _Sourced(union, own)
    made = with_children(
        spark,
        union,
        [
            _levelled(spark, *each, most) if most else each[1].plan
            for each in zip(branches, parts, strict=True)
        ],
    )
    columns = output(made)
    return _Sourced(made, _own(made) or columns[-most - 1], tuple(columns[len(columns) - most :]))


def _levelled(spark: SparkSession, branch: Java, part: _Sourced, most: int) -> Java:
    """A part of a union with as many places as the one that has the most."""
    columns = [*output(branch), *([part.column] if _own(branch) is None else []), *part.joined]
    none = F.lit(None).cast(POSITION_TYPE).alias(JOINED)
    return _with(spark, part.plan, columns, [none] * (most - len(part.joined)))


def _placed(spark: SparkSession, found: _Sourced, source: Java) -> _Sourced:
    """A plan with the place of its event, which is less to keep in state than its whole `_source`."""
    of = column_of(spark, found.column)
    place = F.when(of.isNotNull(), F.struct(*(of[part].alias(part) for part in POSITION))).alias(JOINED)
    made = _with(spark, found.plan, output(found.plan), [place])
    return _Sourced(made, source, (output(made)[-1], *found.joined))


def _with(spark: SparkSession, plan: Java, columns: Sequence[Java], more: Sequence[Column]) -> Java:
    rows = frame_of(spark, plan)
    return plan_of(rows.select(*(column_of(spark, each) for each in columns), *more))


def _own(plan: Java) -> Java | None:
    """The column of that name, if there is just one."""
    named = {number(each): each for each in output(plan) if str(each.name()) == SOURCE}
    return next(iter(named.values())) if len(named) == 1 else None
