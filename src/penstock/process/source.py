"""The source: Kafka's rows, the typed events in them, and as dead letters what can't be decoded."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import UnknownSubjectError
from penstock.log import Table, Topic
from penstock.log.ledger import Offsets
from penstock.log.topic import DEAD_LETTERS
from penstock.process.decoding import ERROR, EVENT, UNKNOWN_SCHEMA, decoded
from penstock.process.java_client import java_settings
from penstock.process.lineage import lineages
from penstock.process.parsing import schema_id
from penstock.registry import Registry
from penstock.schemas import WrittenSchema
from penstock.settings import Settings

SOURCE = "_source"
DELETED = "_deleted"
HEADERS = "array<struct<key:string,value:binary>>"
SOURCE_TYPE = f"topic string, partition int, offset long, written timestamp, headers {HEADERS}"
_UNKNOWN = re.compile(rf"{UNKNOWN_SCHEMA}:([A-Za-z0-9._-]+):(\d+)")
_UTC = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@dataclass(frozen=True)
class KnownSchemas:
    """The schemas of a topic's messages by their numbers, and the numbers that nobody knows."""

    schemas: Mapping[int, WrittenSchema] = field(default_factory=dict)
    unknown: frozenset[int] = frozenset()


def known_schemas(topic: Topic[Any], registry: Registry | None = None) -> KnownSchemas:
    """Return every schema that the registry has for a topic; plain JSON needs none."""
    if topic.format == "json" or registry is None:
        return KnownSchemas()
    try:
        records = registry.versions(topic.subject, deleted=True)
    except UnknownSubjectError:
        return KnownSchemas()
    return KnownSchemas({each.id: registry.as_written(each) for each in reversed(records)})


def kafka_rows(
    spark: SparkSession,
    settings: Settings,
    topics: Sequence[str],
    *,
    streaming: bool,
    start: Offsets | None = None,
    end: Offsets | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the committed rows of topics, from `start` (or their beginning) on; a batch ends at `end`."""
    reader: Any = spark.readStream if streaming else spark.read
    chosen = {
        "subscribe": ",".join(topics),
        "startingOffsets": _offsets(start) if start else "earliest",
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    if not streaming:
        chosen["endingOffsets"] = _offsets(end) if end else "latest"
    asked = dict(options or {})
    if start or end:  # what is asked for here is no matter of options
        asked = {name: value for name, value in asked.items() if not name.startswith(("starting", "ending"))}
    demanded = {"kafka.isolation.level": "read_committed"}
    client = {f"kafka.{name}": value for name, value in java_settings(settings).items()}
    made: DataFrame = reader.format("kafka").options(**(client | chosen | asked | demanded)).load()
    return made


def typed(
    rows: DataFrame, topic: Topic[Any], known: KnownSchemas, *, counted: str | None = None
) -> DataFrame:
    """Return the rows that can be decoded, as the columns of the event class and `_source`.

    A table's rows also have `_deleted`: where it is true, only the key is filled. A row whose schema is
    neither known nor known to be unknown fails the query; `unknown_schema` finds its number in the error.

    Values are refused as Python's codecs refuse them, but for what would cost too much to see in JSON: what
    stands where a text is expected is taken as its JSON, and a null where there is a default is the default.
    With `counted`, Spark observes under that name how many rows were left out.
    """
    read = decoded(rows, topic, known.schemas, known.unknown)
    if counted is not None:
        read = read.observe(counted, F.count_if(F.col(ERROR).isNotNull()).alias("malformed"))
    columns = [
        F.col(EVENT)[name].alias(name, metadata=lineage.to_metadata(name))
        for name, lineage in lineages(topic).items()
    ]
    columns.append(_source().alias(SOURCE))
    if isinstance(topic, Table):
        columns.append(F.col("value").isNull().alias(DELETED))
    return _only(read, F.col(ERROR).isNull(), columns)


def undecodable(rows: DataFrame, topic: Topic[Any], known: KnownSchemas) -> DataFrame:
    """Return the rows that `typed` leaves out, as they go to the dead letters, and their positions."""
    read = decoded(rows, topic, known.schemas, known.unknown)
    letter = [F.concat("topic", F.lit(DEAD_LETTERS)).alias("topic"), F.col("key"), F.col("value")]
    position = [F.col("topic").alias("source"), F.col("partition"), F.col("offset")]
    return _only(read, F.col(ERROR).isNotNull(), [*letter, _dead_headers().alias("headers"), *position])


def schema_ids(rows: DataFrame) -> DataFrame:
    """Return the numbers of schemas, as `id`, that rows of Kafka's name."""
    return rows.select(schema_id().alias("id")).where("id is not null").distinct()


def unknown_schema(error_text: str) -> tuple[str, int] | None:
    """Find in a failed query's error the topic and the number of the schema that was not known."""
    found = _UNKNOWN.search(error_text)
    return (found[1], int(found[2])) if found else None


def _offsets(offsets: Offsets) -> str:
    return json.dumps({topic: {str(p): at for p, at in each.items()} for topic, each in offsets.items()})


def _only(rows: DataFrame, condition: Column, columns: list[Column]) -> DataFrame:
    """Keep some rows. A filter would be pushed below the decoding, which then would be done twice."""
    return rows.select(F.inline(F.when(condition, F.array(F.struct(*columns)))))


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
