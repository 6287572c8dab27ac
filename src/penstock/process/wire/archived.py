"""The archived rows of a topic, as Spark reads them from Parquet, like those of Kafka's connector."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import SetupError
from penstock.log.archive.history import History
from penstock.log.archive.segment import Part
from penstock.log.ranges import Ranges

_TASKS = 200  # at most, unless there are more partitions
_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def archived_rows(
    spark: SparkSession, history: History, parts: Mapping[int, list[Part]], *, ordered: bool = True
) -> DataFrame:
    """Return the rows of parts of segments, if `ordered` partition by partition in the order of the log.

    The files are sorted by key: they are read as they are, and sorted by offset in a task for some of them.
    """
    every = [each for some in parts.values() for each in some]
    _refuse_unreachable(spark, history)
    files = sorted({history.storage.uri(each.segment.path) for each in every})
    rows = spark.read.parquet(*files).where(~_is_beyond(every))
    named = rows.withColumn("topic", F.lit(history.archive.topic)).select(*_COLUMNS)
    if not ordered:
        return named
    groups = _grouped(every)
    numbered = named.withColumn("_task", _number(groups))
    spread = numbered.repartitionById(len(groups), F.col("_task"))
    return spread.sortWithinPartitions("partition", "offset").drop("_task")


def split(history: History, wanted: Ranges) -> tuple[dict[int, list[Part]], dict[int, int]]:
    """Return the parts that hold offset ranges as far as they are archived, and where Kafka goes on."""
    parts = {number: history.parts(number, *each) for number, each in wanted.items()}
    found = {number: some for number, some in parts.items() if some}
    return found, {number: some[-1].next for number, some in found.items()}


def _grouped(parts: list[Part]) -> list[list[Part]]:
    """Parts of one partition that follow each other, a task's each, in order."""
    most, groups = max(1, -(-len(parts) // _TASKS)), list[list[Part]]()
    for each in parts:
        last = groups[-1] if groups else []
        if last and len(last) < most and last[-1].segment.partition == each.segment.partition:
            last.append(each)
        else:
            groups.append([each])
    return groups


def _number(groups: Sequence[list[Part]]) -> Column:
    """The number of a row's group."""
    found = F.when(F.lit(False), F.lit(0))
    for number, group in enumerate(groups):
        found = found.when(_is_in(group), F.lit(number))
    return found


def _is_beyond(parts: list[Part]) -> Column:
    """Whether a file holds a row beyond what is asked of it: another file may hold that, too."""
    found, name = F.lit(False), F.col("_metadata.file_name")
    for each in parts:
        if (each.first, each.next) != (each.segment.first, each.segment.next):
            in_file = (F.col("partition") == each.segment.partition) & (
                name == each.segment.path.split("/")[1]
            )
            found |= in_file & ~F.col("offset").between(each.first, each.next - 1)
    return found


def _is_in(group: list[Part]) -> Column:
    partition, first, end = group[0].segment.partition, group[0].first, group[-1].next
    offset = F.col("offset")
    return (F.col("partition") == partition) & (offset >= first) & (offset < end)


def _refuse_unreachable(spark: SparkSession, history: History) -> None:
    """Spark reaches S3 by a library that PySpark does not bring along."""
    if not history.archive.to.startswith("s3://"):
        return
    try:
        spark._jvm.java.lang.Class.forName(_S3A)  # type: ignore[union-attr]
    except Exception as error:
        raise SetupError(
            f"the beginning of {history.archive.topic!r} is archived in {history.archive.to}, and this Spark "
            "can't read S3",
            hint="give Spark the library, in [spark]: jars.packages = org.apache.hadoop:hadoop-aws:…, of the "
            "version of its Hadoop, and hadoop.fs.s3a.*; or archive to a folder. Consumers read S3 as it is",
        ) from error
