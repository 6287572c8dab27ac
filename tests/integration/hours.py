"""A flow that copies readings, and one behind it that counts them by the hour."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.process import windows
from penstock.process.windows import Late, agg


@dataclass(frozen=True)
class Reading(Event):
    sensor: str
    at: datetime


@dataclass(frozen=True)
class Hour(Event, time="end"):
    sensor: str
    start: datetime
    end: datetime
    kind: str
    rows: int


@dataclass(frozen=True)
class Count(Event, time="end"):
    sensor: str
    end: datetime
    rows: int


raw = Topic("hours.raw", Reading, key="sensor", partitions=2)
copied = Topic("hours.copied", Reading, key="sensor", partitions=2)
counted = Topic("hours.counted", Hour, key="sensor")
late = Topic("hours.late", Reading, key="sensor")
native = Topic("hours.native", Count, key="sensor")
hours = Pipeline("hours")


@hours.flow(reads={"readings": raw}, writes=copied, lanes=2)
def copy(readings: DataFrame) -> DataFrame:
    return readings


@hours.flow(
    reads={"readings": copied}, writes=counted, side_outputs=(late,), options={"maxOffsetsPerTrigger": "60"}
)
def count(readings: DataFrame) -> DataFrame:
    by_hour = windows.tumbling(
        "1 hour", time="at", by="sensor", watermark="1 minute", late=Late.send(late), buckets=2
    )
    return readings.transform(by_hour.agg(latest=agg.max("at"))).drop("latest")


@hours.flow(
    reads={"readings": copied}, writes=native, output="append", options={"maxOffsetsPerTrigger": "60"}
)
def count_natively(readings: DataFrame) -> DataFrame:
    """By Spark's own windows, which drop what is late."""
    by_hour = windows.tumbling("1 hour", time="at", by="sensor", watermark="1 minute")
    return readings.transform(by_hour.agg(F.count("*").alias("rows"))).select("sensor", "end", "rows")
