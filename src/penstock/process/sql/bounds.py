"""Whether the state of a query has a bound, judged over tables without rows: in every mode alike."""

from collections.abc import Collection

from pyspark.sql import SparkSession

from penstock.process.spark.java import Java
from penstock.process.sql.marks import DELAY, TABLE, WINDOWS, has_mark
from penstock.process.sql.planning import is_bounded
from penstock.process.sql.text import QueryText
from penstock.process.sql.tree import expressions, items, kind, nodes, output

_LEAVES = ("LocalRelation", "OneRowRelation", "Range")
_STREAM_LEFT = ("LeftOuter", "LeftSemi", "LeftAnti")
_OF_STREAMS = ("Inner", "LeftOuter", "RightOuter", "LeftSemi")
_OPERATORS = "`joins.latest`, `joins.as_of` and `joins.tables` join tables that change, in a flow of Python"


def has_state(plan: Java) -> bool:
    """Whether a query keeps something from batch to batch."""
    return any(_is_stateful(node) for node in nodes(plan))


def names_in(plan: Java) -> set[str]:
    """The tables that a plan is of."""
    found = (
        column.metadata() for node in nodes(plan) if not node.children().size() for column in output(node)
    )
    return {str(each.getString(TABLE)) for each in found if each.contains(TABLE)}


def refuse_other_relations(plan: Java, text: QueryText) -> None:
    """Refuse what is read besides the tables, behind a function for instance."""
    for node in nodes(plan):
        if not node.children().size() and kind(node) not in _LEAVES:
            raise text.refusal(
                f"it reads {kind(node)}, which its flow does not", node, hint="name it in reads or looks_up"
            )


def refuse_unbounded(
    spark: SparkSession, plan: Java, text: QueryText, changing: Collection[str], *, final: bool
) -> None:
    """Refuse state that would grow for ever, and results that would never be final.

    `changing` are tables that are read as streams of their changes.
    """
    for node in nodes(plan):
        if _is_stateful(node):
            _refuse_changing(node, text, changing)
        if kind(node) == "Aggregate" and node.isStreaming():
            _check_aggregate(node, text, final=final)
        if kind(node) == "Join" and node.isStreaming():
            _check_join(spark, node, text)


def _is_stateful(node: Java) -> bool:
    if kind(node) == "Join":
        return all(child.isStreaming() for child in items(node.children()))
    return kind(node) == "Aggregate" and bool(node.isStreaming())


def _refuse_changing(node: Java, text: QueryText, changing: Collection[str]) -> None:
    found = sorted(names_in(node) & {*changing})
    if found:
        raise text.refusal(
            f"{found[0]!r} is a table, and what a flow reads of it are its changes, not its rows",
            node,
            hint=f"name it in looks_up to join its rows; {_OPERATORS}",
        )


def _check_aggregate(node: Java, text: QueryText, *, final: bool) -> None:
    keys = list(items(node.groupingExpressions()))
    if any(has_mark(each, *WINDOWS) and not has_mark(each, DELAY) for each in keys):
        raise text.refusal(
            "a window of a time without a watermark would stay in state for ever",
            node,
            hint='say watermark={"…": "30 seconds"}, and let the window be of that topic\'s own time',
        )
    if final and not any(has_mark(each, DELAY) for each in keys):
        raise text.refusal(
            "a GROUP BY without a window is never final, and nothing would be emitted",
            node,
            hint='group by window(…), or say output="update" to emit every change',
        )
    for each in expressions(node):
        if kind(each) == "AggregateExpression" and each.isDistinct():
            raise text.refusal(
                "a stream has no aggregates of DISTINCT values",
                each,
                hint="write approx_count_distinct(…) or size(collect_set(…))",
            )


def _check_join(spark: SparkSession, node: Java, text: QueryText) -> None:
    how = str(node.joinType())
    left, right = (bool(child.isStreaming()) for child in items(node.children()))
    if left and right:
        _check_streams(spark, node, text, how)
    elif (how == "FullOuter") or (how in _STREAM_LEFT and right) or (how == "RightOuter" and left):
        raise text.refusal(
            f"a {how} join would emit rows of a table that no event ever matches, which is never known",
            node,
            hint="let the stream be the outer side",
        )


def _check_streams(spark: SparkSession, node: Java, text: QueryText, how: str) -> None:
    if how not in _OF_STREAMS:
        raise text.refusal(
            f"a {how} join of two streams is not to be had in SQL", node, hint='`joins.within` has how="full"'
        )
    if not is_bounded(spark, node):
        raise text.refusal(
            "a join of two streams without a limit in time would keep all events in state",
            node,
            hint="say ON a.key = b.key AND b.at BETWEEN a.at - INTERVAL 1 HOUR AND a.at, with a watermark of "
            f"both; {_OPERATORS}",
        )
