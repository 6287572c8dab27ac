"""Spark's logical plan of a DataFrame, as the few things that we ask of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.documents import JsonObject
from penstock.process.spark.java import Java

Column = JsonObject  # its name, type and metadata, as Spark's JSON has them
_MAY_STOP = ("GlobalLimit", "LocalLimit", "Tail", "Offset", "Sample", "MapIn", "PythonMapIn", "FlatMap")
_NARROW = (
    "Project", "Filter", "Generate", "SubqueryAlias", "Union", "CollectMetrics",
    "StreamingRelation", "LogicalRelation", "Relation", "LogicalRDD", "MapIn", "ArrowEval", "BatchEval",
)  # fmt: skip

_SORTING = ("TransformWithState", "Sort", "Window")


@dataclass(frozen=True)
class Node:
    """A node of a plan, and whether its rows come from a stream."""

    name: str
    streaming: bool
    children: tuple["Node", ...]
    java: Java

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def columns(self) -> list[Column]:
        """What it puts out."""
        return list(json.loads(self.java.schema().json())["fields"])

    @property
    def has_python(self) -> bool:
        """Whether one of its expressions is a Python function."""
        return any(_is_python(each) for each in _items(self.java.expressions()))

    @property
    def aggregates(self) -> list[tuple[str, list[Column]]]:
        """The aggregate functions in its expressions, and the columns that they are of."""
        return [found for each in _items(self.java.expressions()) for found in _aggregates(each)]

    @property
    def keys(self) -> list[Column]:
        """What it knows duplicates by, if it drops them."""
        return [_column(each) for each in _items(self.java.keys())]


def logical_plan(frame: DataFrame) -> Node:
    """Return the analysed plan of a DataFrame."""
    return _node(frame._jdf.queryExecution().analyzed())


def optimised_plan(frame: DataFrame) -> Node:
    """Return the plan of a DataFrame without what it has no use for."""
    optimizer = frame.sparkSession._jsparkSession.sessionState().optimizer()
    return _node(optimizer.execute(frame._jdf.queryExecution().analyzed()))


def is_narrow(plan: Node) -> bool:
    """Whether each row of a plan is made where its source is read, so that they stay in the log's order."""
    if _is_archive(plan):
        return True
    return plan.name.startswith(_NARROW) and all(map(is_narrow, plan.children))


def _is_archive(node: Node) -> bool:
    """Whether it is where the archived records of a topic are put into the log's order: they are raw yet."""
    return node.name == "Sort" and "timestampType" in (each["name"] for each in node.columns)


def reads_everything(plan: Node) -> bool:
    """Whether each source of a plan is read to its end: limits and functions over rows may stop before."""
    return not any(node.name.startswith(_MAY_STOP) for node in plan.walk())


def keeps_order(plan: Node) -> bool:
    """Whether rows of a key come out as they were made: where they were read, or by a step that sorts them.

    Spark's own aggregates and joins spread the rows of a key over tasks, by what else they are grouped by.
    """
    if plan.name.startswith(_SORTING):
        return True
    return plan.name.startswith(_NARROW) and all(map(keeps_order, plan.children))


def topics_of(plan: Node) -> list[str]:
    """The topics that a stream reads, in the order of its plan, each as often as it is read."""
    relations = (node for node in plan.walk() if node.name == "StreamingRelationV2")
    topics = (node.java.extraOptions().get("subscribe") for node in relations)
    return [str(topic) for topic in topics if topic is not None]


def _node(java: Java) -> Node:
    children = tuple(_node(child) for child in _items(java.children()))
    return Node(str(java.nodeName()), bool(java.isStreaming()), children, java)


def _is_python(expression: Java) -> bool:
    named = str(expression.nodeName()).startswith("Python")
    return named or any(_is_python(child) for child in _items(expression.children()))


def _aggregates(expression: Java) -> Iterator[tuple[str, list[Column]]]:
    if str(expression.nodeName()) == "AggregateExpression":
        columns = [_column(each) for each in _items(expression.references().toSeq())]
        yield str(expression.aggregateFunction().prettyName()), columns
    else:
        for child in _items(expression.children()):
            yield from _aggregates(child)


def _column(attribute: Java) -> Column:
    type = json.loads(attribute.dataType().json())
    return {
        "name": str(attribute.name()),
        "type": type,
        "metadata": json.loads(attribute.metadata().json()),
    }


def _items(sequence: Java) -> Iterator[Java]:
    return (sequence.apply(place) for place in range(sequence.size()))
