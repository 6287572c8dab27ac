"""Windows of a query that are over: only their results are there, when a stream is verified."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.process.columns.names import END, FINAL
from penstock.process.spark.java import Java
from penstock.process.sql.marks import EVENT_TIME, WINDOWS, has_mark
from penstock.process.sql.planning import aggregate, column_of, frame_of, plan_of, project, with_children
from penstock.process.sql.tree import items, kind, nodes, number, output
from penstock.process.time.horizon import passed
from penstock.process.time.source_columns import SourceColumn, traced


def over(spark: SparkSession, plan: Java) -> Java:
    """Return a plan without the results of windows that the watermark has not passed."""
    below = [over(spark, child) for child in items(plan.children())]
    made = with_children(spark, plan, below) if below else plan
    time = _window(made) if kind(made) == "Aggregate" else None
    if time is None:
        return made
    columns = list(items(made.aggregateExpressions()))
    if number(time) not in map(number, output(made)):
        columns.append(time)
    rows = frame_of(spark, aggregate(spark, made, columns))
    return project(spark, output(made), plan_of(passed(rows, _end(spark, time))))


def with_order(results: DataFrame, *, final: bool) -> DataFrame:
    """Return results whose `end`, if it is that of their window, says so: they are written in its order."""
    if END not in results.columns:
        return results
    ends = {
        number(each): SourceColumn("", END)
        for node in nodes(plan_of(results))
        if kind(node) == "Aggregate" and _window(node) is not None
        for each in items(node.aggregateExpressions())
        if _is_end(each)
    }
    if traced(results, F.col(END), ends) is None:
        return results
    return results.withMetadata(END, {**(results.schema[END].metadata or {}), FINAL: final})


def _window(node: Java) -> Java | None:
    """The column by which the results of an aggregate become final."""
    keys = (each for each in items(node.groupingExpressions()) if has_mark(each, EVENT_TIME))
    return next(keys, None)


def _end(spark: SparkSession, time: Java) -> Column:
    made = column_of(spark, time)
    return made[END] if has_mark(time, *WINDOWS) else made


def _is_end(named: Java) -> bool:
    """Whether a column is `window.end`."""
    if kind(named) != "Alias" or kind(named.child()) != "GetStructField":
        return False
    field = named.child()
    return has_mark(field.child(), *WINDOWS) and int(field.ordinal()) == 1
