"""Spark's plan of a query as a tree: its nodes and their expressions, also those of subqueries."""

from collections.abc import Iterator

from penstock.process.spark.java import Java


def items(sequence: Java) -> Iterator[Java]:
    """Yield what a sequence of Scala's holds."""
    return (sequence.apply(place) for place in range(sequence.size()))


def kind(tree: Java) -> str:
    """What a node or an expression is."""
    return str(tree.nodeName())


def children(plan: Java) -> list[Java]:
    """The nodes below a node, those of its WITH included."""
    inner = items(plan.innerChildren()) if kind(plan) == "UnresolvedWith" else ()
    return [*inner, *items(plan.children())]


def nodes(plan: Java, *, subqueries: bool = True) -> Iterator[Java]:
    """Yield a node and all below it."""
    yield plan
    below = [*children(plan), *(items(plan.subqueries()) if subqueries else ())]
    for child in below:
        yield from nodes(child, subqueries=subqueries)


def expressions(plan: Java) -> Iterator[Java]:
    """Yield all expressions of one node, each before what it is made of."""
    for expression in items(plan.expressions()):
        yield from parts(expression)


def parts(expression: Java) -> Iterator[Java]:
    """Yield an expression and all that it is made of."""
    yield expression
    for child in items(expression.children()):
        yield from parts(child)


def output(plan: Java) -> list[Java]:
    """The columns that a node puts out."""
    return list(items(plan.output()))


def number(named: Java) -> int:
    """What Spark knows a column by."""
    return int(named.exprId().id())
