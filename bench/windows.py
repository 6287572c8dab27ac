"""Windows against Spark's own operator, on the same rows in one run: a stream over files, batch by batch."""

import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.process import dedup, keyed, session, windows
from penstock.process.windows import Late, agg

FILES = 8
ROWS = 250_000  # in each file
KEYS = 10_000
FEW = 5_000  # of so many rows one is taken where each has 3,600 results
ROUNDS = 3
Query = Callable[[DataFrame], DataFrame]


def spark_tumbling(rows: DataFrame) -> DataFrame:
    return (
        rows.withWatermark("at", "5 seconds").groupBy("key", F.window("at", "10 seconds")).agg(*_measures())
    )


def spark_hopping(rows: DataFrame) -> DataFrame:
    hops = F.window("at", "60 seconds", "10 seconds")
    return rows.withWatermark("at", "5 seconds").groupBy("key", hops).agg(*_measures())


def native_tumbling(rows: DataFrame) -> DataFrame:
    return rows.transform(
        windows.tumbling("10 seconds", time="at", by="key", watermark="5 seconds").agg(*_measures())
    )


def late_tumbling(rows: DataFrame) -> DataFrame:
    late = Late.refire(within="20 seconds")
    windowing = windows.tumbling(
        "10 seconds", time="at", by="key", watermark="5 seconds", late=late, buckets=8
    )
    return rows.transform(windowing.agg(n=agg.count(), total=agg.sum("amount")))


def native_hopping(rows: DataFrame) -> DataFrame:
    windowing = windows.hopping("60 seconds", every="10 seconds", time="at", by="key", watermark="5 seconds")
    return rows.transform(windowing.agg(*_measures()))


def late_hopping(rows: DataFrame) -> DataFrame:
    windowing = windows.hopping(
        "60 seconds",
        every="10 seconds",
        time="at",
        by="key",
        watermark="5 seconds",
        late=Late.drop(),
        buckets=8,
    )
    return rows.transform(windowing.agg(n=agg.count(), total=agg.sum("amount")))


def late_fine_hopping(rows: DataFrame) -> DataFrame:
    """Many windows over few events: what it costs is the results."""
    windowing = windows.hopping(
        "1 hour", every="1 second", time="at", by="key", watermark="5 seconds", late=Late.drop(), buckets=8
    )
    return _few(rows).transform(windowing.agg(n=agg.count(), total=agg.sum("amount")))


def spark_fine_hopping(rows: DataFrame) -> DataFrame:
    hops = F.window("at", "1 hour", "1 second")
    return _few(rows).withWatermark("at", "5 seconds").groupBy("key", hops).agg(*_measures())


def spark_duplicates(rows: DataFrame) -> DataFrame:
    """Spark's own knows no `within`: an event of each key goes through."""
    return rows.withWatermark("at", "5 seconds").dropDuplicatesWithinWatermark(["key"])


def first_of_each(rows: DataFrame) -> DataFrame:
    return rows.transform(_once("key"))


def first_of_one(rows: DataFrame) -> DataFrame:
    """All events have one key, and are further apart than `within`: every one goes through."""
    return rows.withColumn("key", F.lit("k")).transform(_once("key"))


def native_sliding(rows: DataFrame) -> DataFrame:
    """A row for each event with the last of its key, in Spark's own state; emitted as events come."""
    recent = keyed.recent(by="key", time="at", within="10 seconds", watermark="5 seconds")
    total = keyed.sum("amount", type="long").alias("total")
    return rows.transform(recent).select("event.key", "event.at", keyed.count().alias("n"), total)


def late_sliding(rows: DataFrame) -> DataFrame:
    windowing = windows.sliding("10 seconds", time="at", by="key", watermark="5 seconds", buckets=8)
    return rows.transform(windowing.agg(n=agg.count(), total=agg.sum("amount")))


QUERIES: dict[str, Query] = {
    "tumbling, Spark's own": spark_tumbling,
    "tumbling, native": native_tumbling,
    "tumbling, with a late policy": late_tumbling,
    "hopping, Spark's own": spark_hopping,
    "hopping, native": native_hopping,
    "hopping, with a late policy": late_hopping,
    "hopping 3,600 deep, Spark's own": spark_fine_hopping,
    "hopping 3,600 deep, with a late policy": late_fine_hopping,
    "duplicates, Spark's own": spark_duplicates,
    "duplicates, of many keys": first_of_each,
    "duplicates, none of one key": first_of_one,
    "sliding, Spark's own": native_sliding,
    "sliding, with a late policy": late_sliding,
}


def main() -> None:
    print(
        f"{FILES * ROWS:,} rows of {KEYS:,} keys in {FILES} batches; median of {ROUNDS} interleaved rounds\n"
    )
    spark = session(name="bench", partitions=2, shuffle=2)
    with tempfile.TemporaryDirectory() as folder:
        write_rows(spark, Path(folder) / "rows", FILES)
        write_rows(spark, Path(folder) / "sliding", 1)
        times: dict[str, list[float]] = {name: [] for name in QUERIES}
        for number in range(ROUNDS + 1):
            for name, query in QUERIES.items():
                place = Path(folder) / f"{name} {number}".replace(" ", "_")
                source = Path(folder) / ("sliding" if name.startswith("sliding") else "rows")
                times[name].append(run(spark, source, query, place))
        spark.stop()
    print("| windows | rows/s | of Spark's |\n|---|---:|---:|")
    rates = {name: rows_of(name) / statistics.median(taken[1:]) for name, taken in times.items()}
    for name, rate in rates.items():
        base = rates[name.rsplit(", ", 1)[0] + ", Spark's own"]
        print(f"| {name} | {rate:,.0f} | {rate / base:.2f} |")


def rows_of(name: str) -> int:
    """Rows that are read: one file where Spark's own is slow, few of them where each has many results."""
    if name.startswith("hopping 3,600"):
        return FILES * ROWS // FEW
    return ROWS * (1 if name.startswith("sliding") else FILES)


def write_rows(spark: SparkSession, folder: Path, files: int) -> None:
    """Each file is 20 seconds of events."""
    for number in range(files):
        rows = spark.range(0, ROWS, 1, 1).selectExpr(
            f"concat('k', cast(rand({number}) * {KEYS} as int)) as key",
            f"timestamp_micros(1767225600000000 + {number} * 20000000 + id * 20000000 div {ROWS}) as at",
            "id % 1000 as amount",
        )
        rows.coalesce(1).write.mode("append").parquet(str(folder))


def run(spark: SparkSession, source: Path, query: Query, place: Path) -> float:
    rows = spark.readStream.schema("key string, at timestamp, amount long").option("maxFilesPerTrigger", 1)
    for_each = query is native_sliding  # a row out for each row in, which is what real-time mode has
    spark.conf.set("spark.sql.streaming.useStreamlineAggregator", str(for_each).lower())
    began = time.perf_counter()
    output = "update" if for_each else "append"
    stream = query(rows.parquet(str(source))).writeStream.format("noop").outputMode(output)
    stream.trigger(availableNow=True).option("checkpointLocation", str(place)).start().awaitTermination()
    return time.perf_counter() - began


def _few(rows: DataFrame) -> DataFrame:
    return rows.where(F.pmod(F.xxhash64("key", "at"), F.lit(FEW)) == 0)


def _once(key: str) -> Callable[[DataFrame], DataFrame]:
    return dedup.first(key, time="at", within=timedelta(microseconds=50), watermark="5 seconds", buckets=8)


def _measures() -> tuple[F.Column, F.Column]:  # type: ignore[name-defined]
    return F.count("*").alias("n"), F.sum("amount").alias("total")
