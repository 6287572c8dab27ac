"""The source: the rows of topics as Kafka's connector gives them."""

import json
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from penstock.log.ledger import Offsets
from penstock.process.spark.java_client import java_settings
from penstock.process.wire.archived import archived_rows
from penstock.process.wire.lacking import Lacking
from penstock.settings import Settings


def kafka_rows(
    spark: SparkSession,
    settings: Settings,
    topics: Sequence[str],
    *,
    streaming: bool,
    start: Offsets | None = None,
    end: Offsets | None = None,
    options: Mapping[str, str] | None = None,
    archived: bool = True,
    ordered: bool = True,
) -> DataFrame:
    """Return the committed rows of topics, from `start` (or their beginning) on; a batch ends at `end`.

    A batch begins in the archives of topics whose beginning Kafka no longer has, unless `options` say where
    it begins. Those of a partition are in the order of the log, unless that is not needed: not `ordered`,
    archived rows come as their files have them.
    """
    by_option = not start and any(name.startswith("starting") for name in options or {})
    if streaming or by_option or not archived:
        return _from_kafka(spark, settings, topics, streaming, start, end, options)
    found = Lacking.found(settings, topics, start, end)
    if found is None:
        return _from_kafka(spark, settings, topics, streaming, start, end, options)
    rows = [
        archived_rows(spark, found.histories[name], parts, ordered=ordered)
        for name, parts in found.parts.items()
    ]
    rows.append(_from_kafka(spark, settings, topics, streaming, found.start, found.end, options))
    return reduce(DataFrame.unionByName, rows)


def _from_kafka(
    spark: SparkSession,
    settings: Settings,
    topics: Sequence[str],
    streaming: bool,
    start: Offsets | None,
    end: Offsets | None,
    options: Mapping[str, str] | None,
) -> DataFrame:
    reader: DataStreamReader | DataFrameReader = spark.readStream if streaming else spark.read
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
    return reader.format("kafka").options(**(client | chosen | asked | demanded)).load()


def _offsets(offsets: Offsets) -> str:
    return json.dumps({topic: {str(p): at for p, at in each.items()} for topic, each in offsets.items()})
