"""A topic as a DataFrame, for anybody's own PySpark job."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession

from penstock.log import Topic
from penstock.log.ledger import Offsets
from penstock.process.wire.events import typed
from penstock.process.wire.known_schemas import KnownSchemas, known_schemas
from penstock.process.wire.source import kafka_rows
from penstock.registry import Registry
from penstock.settings import Settings


def read(
    spark: SparkSession,
    topic: Topic[Any],
    settings: Settings | None = None,
    *,
    streaming: bool = False,
    counted: str | Observation | None = None,
    registry: Registry | None = None,
    options: Mapping[str, str] | None = None,
    start: Offsets | None = None,
    end: Offsets | None = None,
    ordered: bool = True,
) -> DataFrame:
    """Return a topic's events as typed columns and `_source`: all that there are, or as a stream.

        orders = read(spark, ORDERS)
        per_minute = read(spark, ORDERS, streaming=True).transform(windows.tumbling(…).agg(…))

    A malformed message stops the query with its position and what is wrong with it. With `counted` such ones
    are left out, and Spark counts them as `malformed` under that name: in a stream's progress, or in an
    `Observation` for a batch. A table's rows also have `_deleted`, those of a
    captured one `_change`.

    Schemas of Avro and JSON Schema are those that the registry has now; a stream stops at one that is newer,
    and goes on with it when it is started again. `options` are those of Spark's Kafka source, as
    `startingOffsets`; without settings, those of `Settings.load()` are used. `start` and `end` are offsets by
    topic and partition. What is added up needs no order: with `ordered=False` archived events are not
    brought into that of the log, which is a shuffle less.
    """
    chosen = settings or Settings.load()
    rows = kafka_rows(
        spark,
        chosen,
        [topic.name],
        streaming=streaming,
        start=start,
        end=end,
        options=options,
        ordered=ordered,
    )
    known = _known(topic, chosen, registry)
    return typed(rows, topic, known, counted=counted, strict=counted is None)


def _known(topic: Topic[Any], settings: Settings, registry: Registry | None) -> KnownSchemas:
    if registry is not None or not topic.is_registered:
        return known_schemas(topic, registry)
    with Registry(settings) as own:
        return known_schemas(topic, own)
