"""Readings become alerts: by a threshold, and by what did not come."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.apps.sensors.events import GATEWAYS, alerts, readings
from penstock.pipeline import Pipeline
from penstock.process import keyed, patterns
from penstock.process.patterns import Pattern
from penstock.process.windows import Watermark

LIMIT = 90.0  # degrees
SILENCE = "30 seconds"
DELAY = "5 seconds"
sensors = Pipeline("sensors")


@sensors.flow(reads={"readings": readings}, writes=alerts)
def hot(readings: DataFrame) -> DataFrame:
    """The third reading in a row above the limit, once until the machine has cooled down."""
    recent = keyed.recent(
        by="machine", time="at", within="1 minute", at_most=4, keeps=["temperature"], bounded_keys=True
    )
    is_hot = F.transform("recent", lambda reading: reading.temperature > LIMIT)
    third = F.slice(is_hot, 1, 3) == F.array(*[F.lit(True)] * 3)
    fourth = F.coalesce(F.get(is_hot, F.lit(3)), F.lit(False))
    return _alerts(readings.transform(recent).where(third & ~fourth), "hot", F.col("event.at"))


@sensors.flow(reads={"readings": readings}, writes=alerts, output="append")
def silent(readings: DataFrame) -> DataFrame:
    """No reading for 30 seconds, known when all gateways have got so far: one may be cut off, and no more."""
    stopped = Pattern.one("true").not_followed_by("true", within=SILENCE)
    slowest = Watermark(DELAY, sources=("gateway", GATEWAYS))
    found = patterns.match(stopped, by="machine", time="at", within=SILENCE, watermark=slowest)
    return _alerts(readings.transform(found), "silent", F.col("event.at") + F.expr(f"interval {SILENCE}"))


def _alerts(found: DataFrame, kind: str, at: Column) -> DataFrame:
    return found.select(
        F.concat_ws("/", "event.id", F.lit(kind)).alias("id"),
        "event.machine",
        F.lit(kind).alias("kind"),
        F.col("event.id").alias("reading"),
        at.alias("at"),
        "_source",
    )
