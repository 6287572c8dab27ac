"""The source: the rows of topics as Kafka's connector gives them."""

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from penstock.log.ledger import Offsets
from penstock.process.spark.java_client import java_settings
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
) -> DataFrame:
    """Return the committed rows of topics, from `start` (or their beginning) on; a batch ends at `end`."""
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
