"""A query planned over tables that are handed in: Spark's catalog is neither asked nor written to."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import StructType

from penstock.process.spark.java import Java
from penstock.process.sql.marks import DELAY, EVENT_TIME, TABLE
from penstock.process.sql.tree import items

_CATALYST = "org.apache.spark.sql.catalyst"
_A_MOMENT = 10**12  # milliseconds: any watermark will do to see whether it bounds something


def parsed(spark: SparkSession, text: str) -> Java:
    """Return what a query says, before any name in it means something.

    The parser is the one without variables (`${…}`), which could bring settings and secrets into the query.
    """
    return _jvm(spark, f"{_CATALYST}.parser.CatalystSqlParser")().parsePlan(text)


def planned(spark: SparkSession, query: Java, tables: Mapping[str, Java]) -> Java:
    """Return the plan of a query over plans by name.

    They are a WITH around it, which comes before views and tables of the catalog, and ends with the query.
    """
    none = _jvm(spark, "scala.Option").empty()
    named = [
        _jvm(spark, "scala.Tuple3")(name, _alias(spark, name, plan), none) for name, plan in tables.items()
    ]
    whole = _jvm(spark, f"{_CATALYST}.plans.logical.UnresolvedWith")(query, sequence(spark, named), False)
    analysed = _rows(spark, whole).queryExecution().analyzed()
    return _jvm(spark, f"{_CATALYST}.optimizer.InlineCTE")(True, False, False).apply(analysed)


def frame_of(spark: SparkSession, plan: Java) -> DataFrame:
    """Return the rows of a plan."""
    return DataFrame(_rows(spark, plan), spark)


def plan_of(frame: DataFrame) -> Java:
    """Return the plan of rows."""
    return frame._jdf.queryExecution().analyzed()


def column_of(spark: SparkSession, column: Java) -> Column:
    """Return a column of a plan, whatever its name is."""
    return ClassicColumn(_jvm(spark, "org.apache.spark.sql.classic.ExpressionUtils").column(column))


def blank(spark: SparkSession, name: str, schema: StructType, *, streaming: bool) -> Java:
    """Return the plan of a table without rows, whose columns say what it stands for."""
    marked = StructType.fromJson(schema.jsonValue())
    for field in marked:
        own = field.metadata or {}
        field.metadata = {**own, **({DELAY: 0} if EVENT_TIME in own else {}), TABLE: name}
    type = spark._jsparkSession.parseDataType(marked.json())
    columns = _jvm(spark, f"{_CATALYST}.types.DataTypeUtils").toAttributes(type)
    none = _jvm(spark, "scala.Option").empty()
    relation = _jvm(spark, f"{_CATALYST}.plans.logical.LocalRelation")
    return relation(columns, sequence(spark, []), streaming, none)


def project(spark: SparkSession, columns: Sequence[Java], plan: Java) -> Java:
    """Return a plan with these columns of another."""
    return _jvm(spark, f"{_CATALYST}.plans.logical.Project")(sequence(spark, columns), plan)


def aggregate(spark: SparkSession, grouped: Java, columns: Sequence[Java]) -> Java:
    """Return an aggregate that puts out other columns."""
    made = _jvm(spark, f"{_CATALYST}.plans.logical.Aggregate")
    return made(grouped.groupingExpressions(), sequence(spark, columns), grouped.child(), grouped.hint())


def with_children(spark: SparkSession, plan: Java, children: Sequence[Java]) -> Java:
    """Return a node with other nodes below it."""
    return plan.withNewChildren(sequence(spark, children))


def is_bounded(spark: SparkSession, join: Java) -> bool:
    """Whether the watermark lets go of both sides of a join of streams, as Spark will find when it runs."""
    helper = _jvm(spark, f"{_CATALYST}.analysis.StreamingJoinHelper")
    if helper.isWatermarkInJoinKeys(join):
        return True
    moment = _jvm(spark, "scala.Option").apply(_A_MOMENT)
    one, other = (side.outputSet() for side in items(join.children()))
    return all(
        helper.getStateValueWatermark(held, seen, join.condition(), moment).isDefined()
        for held, seen in ((one, other), (other, one))
    )


def refuse_unsupported(spark: SparkSession, plan: Java, output: str) -> None:
    """Let Spark refuse what it can't do in a stream, before there is one."""
    modes = _jvm(spark, "org.apache.spark.sql.streaming.OutputMode")
    mode = modes.Append() if output == "append" else modes.Update()
    _jvm(spark, f"{_CATALYST}.analysis.UnsupportedOperationChecker").checkForStreaming(plan, mode)


def sequence(spark: SparkSession, items: Sequence[Java]) -> Java:
    """Return a sequence of Scala's."""
    return _jvm(spark, "org.apache.spark.api.python.PythonUtils").toSeq(list(items))


def _alias(spark: SparkSession, name: str, plan: Java) -> Java:
    named = _jvm(spark, f"{_CATALYST}.plans.logical.SubqueryAlias")
    return named(_jvm(spark, f"{_CATALYST}.AliasIdentifier").apply(name), plan)


def _rows(spark: SparkSession, plan: Java) -> Java:
    return _jvm(spark, "org.apache.spark.sql.classic.Dataset").ofRows(spark._jsparkSession, plan)


def _jvm(spark: SparkSession, name: str) -> Java:
    """A class of Java's by its name."""
    found = spark._jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found
