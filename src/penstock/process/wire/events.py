"""Decoded rows as typed events, or as the dead letters of those that could not be decoded."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from penstock.log import Table, Topic
from penstock.log.topic import DEAD_LETTERS
from penstock.process.columns.data_error import data_error
from penstock.process.columns.lineage import Lineage
from penstock.process.columns.names import CHANGE, DELETED, HEADERS, SOURCE
from penstock.process.wire.debezium.decoding import decoded_changes
from penstock.process.wire.decoding import ERROR, EVENT, decoded
from penstock.process.wire.known_schemas import KnownSchemas
from penstock.process.wire.lineages import lineages

_UTC = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def typed(
    rows: DataFrame,
    topic: Topic[Any],
    known: KnownSchemas,
    *,
    counted: str | Observation | None = None,
    observed: Sequence[Column] = (),
    strict: bool = False,
) -> DataFrame:
    """Return the rows that can be decoded, as the columns of the event class and `_source`.

    A table's rows also have `_deleted`: where it is true, only the key is filled. Captured ones have
    that, and `_change`: the operation, the row before it and its commit; a tombstone has none. A row whose
    schema is neither known nor known to be unknown fails the query; `unknown_schema` finds its number in the
    error.

    Values are refused as Python's codecs refuse them, but for what would cost too much to see in JSON: what
    stands where a text is expected is taken as its JSON, and a null where there is a default is the default.
    With `counted`, Spark observes under that name how many rows were left out, and what is to be `observed`.
    With `strict` none is left out: the first one stops the query.
    """
    read = _decoded(rows, topic, known)
    if strict:
        read = read.withColumn(ERROR, _refused())
    if counted is not None:
        read = read.observe(counted, F.count_if(F.col(ERROR).isNotNull()).alias("malformed"), *observed)
    columns = [
        F.col(EVENT)[name].alias(name, metadata=lineage.to_metadata(name))
        for name, lineage in lineages(topic).items()
    ]
    if topic.commit_time is not None:  # a tombstone is dated by the log
        columns.append(F.coalesce(F.col(CHANGE)["committed"], "timestamp").alias(topic.commit_time))
    columns.append(_source().alias(SOURCE))
    if topic.is_captured:
        columns += [F.col(DELETED), _change(topic)]
    elif isinstance(topic, Table):
        columns.append(F.col("value").isNull().alias(DELETED))
    return _only(read, F.col(ERROR).isNull(), columns)


def undecodable(rows: DataFrame, topic: Topic[Any], known: KnownSchemas) -> DataFrame:
    """Return the rows that `typed` leaves out, as they go to the dead letters, and their positions."""
    read = _decoded(rows, topic, known)
    letter = [F.concat("topic", F.lit(DEAD_LETTERS)).alias("topic"), F.col("key"), F.col("value")]
    position = [F.col("topic").alias("source"), F.col("partition"), F.col("offset")]
    return _only(read, F.col(ERROR).isNotNull(), [*letter, _dead_headers().alias("headers"), *position])


def _decoded(rows: DataFrame, topic: Topic[Any], known: KnownSchemas) -> DataFrame:
    return decoded_changes(rows, topic, known) if topic.is_captured else decoded(rows, topic, known)


def _change(topic: Topic[Any]) -> Column:
    """How a captured row changed; the row before has the lineages of the class."""
    lineage = Lineage(fields={"before": Lineage(fields=lineages(topic))})
    return F.col(CHANGE).alias(CHANGE, metadata=lineage.to_metadata(CHANGE))


def _only(rows: DataFrame, condition: Column, columns: list[Column]) -> DataFrame:
    """Keep some rows. A filter would be pushed below the decoding, which then would be done twice."""
    return rows.select(F.inline(F.when(condition, F.array(F.struct(*columns)))))


def _refused() -> Column:
    """The error of a row, raised where there is one."""
    place = F.concat_ws("/", "topic", "partition", "offset")
    message = F.concat(F.lit("the message at "), place, F.lit(" can't be decoded: "), F.col(ERROR))
    return F.when(F.col(ERROR).isNotNull(), data_error(message).cast("string"))


def _source() -> Column:
    return F.struct("topic", "partition", "offset", F.col("timestamp").alias("written"), "headers")


def _dead_headers() -> Column:
    """The headers of `DeadLetter.to_headers`, dated by the log so that a duplicate is the same."""
    own = {
        "topic": F.col("topic"),
        "partition": F.col("partition").cast("string"),
        "offset": F.col("offset").cast("string"),
        "error": F.col(ERROR),
        "at": F.to_csv(F.struct("timestamp"), _UTC),
    }
    made = F.array(
        *(
            F.struct(F.lit(f"penstock.dead.{name}").alias("key"), text.cast("binary").alias("value"))
            for name, text in own.items()
        )
    )
    theirs = F.filter("headers", lambda each: ~each["key"].startswith("penstock.dead."))
    return F.concat(F.coalesce(theirs, F.array().cast(HEADERS)), made)
