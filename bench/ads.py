"""Ads: what the join of impressions and clicks keeps, by the length of its window, and what that comes to."""

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.joins import SOURCE
from bench.state import memory
from penstock.apps.ads.pipeline import outcomes_of
from penstock.process import session

RUNS = ((15, 250_000), (5, 1_000_000), (15, 1_000_000), (60, 1_000_000))  # minutes, impressions an hour
AIM = 10_000_000  # impressions an hour
BATCH, CLICKS = 5, 20  # minutes of event time; one of so many impressions is clicked
IMPRESSIONS = f"impression string, campaign string, at timestamp, {SOURCE}"
CLICKED = f"impression string, click string, at timestamp, {SOURCE}"
COUNTED = {"spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "true"}
PLACE = "named_struct('topic', 't', 'partition', 0, 'offset', id, 'written', timestamp_micros(0)) as _source"


@dataclass(frozen=True)
class Kept:
    """What state held after a batch, and how long the batch took."""

    rows: int
    bytes: int
    seconds: float


def main() -> None:
    spark = session(name="bench", partitions=2, shuffle=2, config=COUNTED)
    print(
        "impressions beside the clicks of the minutes after them; state while old ones go and new ones come\n"
    )
    print(
        "| window | impressions/h | events/s | rows in state | on disk | memory | rows at 10 M/h | on disk |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for minutes, hourly in RUNS:
            place = Path(folder) / f"{minutes}-{hourly}"
            batches = 2 * minutes // BATCH + 5
            for number in range(batches):
                write(spark, place, number, hourly)
            show(minutes, hourly, run(spark, place, minutes)[-4:])
    spark.stop()


def show(minutes: int, hourly: int, steady: list[Kept]) -> None:
    rows, size = max(each.rows for each in steady), max(each.bytes for each in steady)
    seconds = statistics.median(each.seconds for each in steady)
    rate = hourly * BATCH / 60 * (1 + 1 / CLICKS) / seconds
    more = AIM / hourly
    print(
        f"| {minutes} min | {hourly:,} | {rate:,.0f} | {rows:,} | {size / 2**20:,.0f} MiB "
        f"| {memory() / 2**30:.1f} GiB | {rows * more:,.0f} | {size * more / 2**30:,.1f} GiB |",
        flush=True,
    )


def write(spark: SparkSession, place: Path, number: int, hourly: int) -> None:
    """Write the impressions of a batch, and their clicks, most of them within seconds."""
    count, start, length = hourly * BATCH // 60, 86_400 + number * BATCH * 60, BATCH * 60
    shown = spark.range(0, count, 1, 1).selectExpr(
        f"concat('impression-', id + {number * count}) as impression",
        "concat('campaign-', id % 100) as campaign",
        f"timestamp_seconds({start} + id * {length / count}) as at",
        PLACE,
    )
    shown.write.mode("append").parquet(str(place / "impressions"))
    clicked = spark.range(0, count // CLICKS, 1, 1).selectExpr(
        f"concat('impression-', id * {CLICKS} + {number * count}) as impression",
        f"concat('click-', id + {number * count}) as click",
        f"timestamp_seconds({start} + id * {length * CLICKS / count} + rand(1) * 60) as at",
        PLACE,
    )
    clicked.write.mode("append").parquet(str(place / "clicks"))


def run(spark: SparkSession, place: Path, minutes: int) -> list[Kept]:
    """Take a file of each side at a time."""
    impressions, clicks = (
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place / side))
        for side, schema in (("impressions", IMPRESSIONS), ("clicks", CLICKED))
    )
    outcomes: DataFrame = outcomes_of(impressions, clicks, f"{minutes} minutes")
    stream = outcomes.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    return kept(stream.option("checkpointLocation", str(place / "state")).start())


def kept(running: StreamingQuery) -> list[Kept]:
    """Wait until a query has done its work; return what each batch with rows left in state."""
    found: dict[int, Kept] = {}
    while True:
        active = running.isActive
        for each in running.recentProgress:
            if each["numInputRows"]:
                join = each["stateOperators"][0]
                size = join["customMetrics"]["rocksdbSstFileSize"]
                found[each["batchId"]] = Kept(join["numRowsTotal"], size, each["batchDuration"] / 1000)
        if not active:
            running.awaitTermination()
            return [found[number] for number in sorted(found)]
        time.sleep(0.5)
