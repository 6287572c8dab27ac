"""Where a column's times come from: the column of a source that they are, unchanged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from penstock.process.spark.java import Java


@dataclass(frozen=True)
class SourceColumn:
    """A column of what a flow reads."""

    source: str
    column: str


Columns = Mapping[int, SourceColumn]  # by the number that Spark gives an attribute


def columns_of(rows: DataFrame, source: str) -> dict[int, SourceColumn]:
    """Return the columns of a source by their numbers, with which `traced` finds them again."""
    output = _items(rows._jdf.queryExecution().analyzed().output())
    return {_number(each): SourceColumn(source, str(each.name())) for each in output}


def traced(rows: DataFrame, column: Column, known: Columns) -> frozenset[SourceColumn] | None:
    """Return the sources' columns that a column is, through filters, renames, joins and unions.

    None stands for one that is computed, or that comes out of a function or an aggregate.
    """
    if not known:
        return None
    plan = rows.select(column.alias("_traced"))._jdf.queryExecution().analyzed()
    expression = _unguarded(plan.projectList().apply(0).child())
    found = list(_sources(plan.child(), _attribute(expression), known))
    return None if not found or None in found else frozenset(each for each in found if each)


def _unguarded(expression: Java) -> Java:
    """The time itself, of one that must not be null (`required_time`) or before 1970 (`since_epoch`)."""
    while True:
        kind = expression.nodeName()
        if kind == "Coalesce":
            expression = expression.children().apply(0)
        elif kind == "CaseWhen":
            expression = expression.elseValue().get()
        else:
            return expression


def _sources(plan: Java, number: int | None, known: Columns) -> Iterator[SourceColumn | None]:
    if number is None or number in known:
        yield known.get(number) if number is not None else None
        return
    below = list(_below(plan, number))
    if not below:
        yield None
    for child, same in below:
        yield from _sources(child, same, known)


def _below(plan: Java, number: int) -> Iterator[tuple[Java, int | None]]:
    """Yield the children of a node that a column comes from, and its number there."""
    children = list(_items(plan.children()))
    if plan.nodeName() == "Union":
        place = [_number(each) for each in _items(plan.output())].index(number)
        yield from ((child, _number(child.output().apply(place))) for child in children)
    elif plan.nodeName() == "Project":
        named = next(each for each in _items(plan.projectList()) if _number(each) == number)
        yield children[0], _attribute(named.child() if named.nodeName() == "Alias" else named)
    else:
        yield from (
            (child, number)
            for child in children
            if any(_number(each) == number for each in _items(child.output()))
        )


def _attribute(expression: Java) -> int | None:
    return _number(expression) if expression.nodeName() == "AttributeReference" else None


def _number(named: Java) -> int:
    return int(named.exprId().id())


def _items(sequence: Java) -> Iterator[Java]:
    return (sequence.apply(place) for place in range(sequence.size()))
