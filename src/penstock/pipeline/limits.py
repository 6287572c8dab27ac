"""What real-time mode can't do, reported before a flow starts: the reason and the alternative."""

from collections.abc import Iterator

from pyspark.sql import DataFrame

from penstock.errors import FlowError
from penstock.process.spark.logical import Node, logical_plan, topics_of

_PYTHON = ("MapIn", "FlatMapGroups", "FlatMapCoGroups", "TransformWithState", "ArrowEval", "BatchEval")


def refuse_limits(label: str, frame: DataFrame) -> None:
    """Refuse a flow that real-time mode can't run."""
    found = next(limits(logical_plan(frame)), None)
    if found is not None:
        reason, instead = found
        raise FlowError(
            f"flow {label!r} can't run in real-time mode: {reason}",
            hint=f"{instead}, or use stream mode",
        )


def limits(plan: Node) -> Iterator[tuple[str, str]]:
    """Yield each thing in a plan that real-time mode can't do, with what to do instead."""
    nodes = list(plan.walk())
    aggregates = [node for node in nodes if node.name == "Aggregate" and node.streaming]
    for node in nodes:
        if node.has_python or node.name.startswith(_PYTHON):
            yield f"it runs Python for its rows ({node.name})", "say it with Spark's own functions"
        if node.name == "Join" and all(child.streaming for child in node.children):
            yield "it joins two streams", "unite them and group by the key"
        if node.name.startswith("Deduplicate"):
            yield "it drops duplicates", "let readers know them by the result's id"
        if node.name == "Union" and any(
            each in aggregates for child in node.children for each in child.walk()
        ):
            yield "it unites rows after a stateful step", "split it into two flows with a topic between"
    topics = topics_of(plan)
    for topic in sorted({each for each in topics if topics.count(each) > 1}):
        yield f"it reads {topic!r} twice", "make one pass of it, with CASE or `when`"
    if len(aggregates) > 1:
        yield "it has two stateful steps in a row", "split it into two flows with a topic between"
    if any("session_window" in node.java.toString().split("\n")[0] for node in aggregates):
        yield "it has session windows", "use windows of fixed length"
