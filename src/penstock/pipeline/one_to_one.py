"""Whether an event has at most one result of a flow: then its place alone makes the id of that result."""

from pyspark.sql import DataFrame

from penstock.process.keyed.recent import HELD
from penstock.process.spark.logical import Node, logical_plan

_ROW_BY_ROW = ("Project", "Filter", "SubqueryAlias", "CollectMetrics", "Sort", "Window", "Repartition")


def gives_one_result(results: DataFrame) -> bool:
    """Say whether each event of a batch plan becomes at most one row: no join, union, explode or function.

    `keyed.recent` gives one result for each event, although it puts events into several spans on its way.
    """
    return _gives_one(logical_plan(results), within_recent=False)


def _gives_one(node: Node, *, within_recent: bool) -> bool:
    recent = within_recent or _is_recent(node)
    if node.name == "Generate":
        return _is_source(node)
    allowed = node.name.startswith(_ROW_BY_ROW) or (recent and node.name in ("Expand", "Union"))
    return not node.children or (
        allowed and all(_gives_one(child, within_recent=recent) for child in node.children)
    )


def _is_source(node: Node) -> bool:
    """Whether this is the step that leaves malformed records out: the lowest of its kind, above a scan."""
    below = [each.name for child in node.children for each in child.walk()]
    return all(name in ("Project", "CollectMetrics") for name in below[:-1])


def _is_recent(node: Node) -> bool:
    names = (str(field) for field in node.java.schema().fieldNames())
    return node.name == "Window" and any(name.startswith(HELD) for name in names)
