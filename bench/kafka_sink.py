"""The exactly-once Kafka sink against Spark's own, which is at-least-once, on the same rows in one run."""

import statistics
import time

from pyspark.sql import DataFrame, SparkSession

from penstock.local import running
from penstock.log import Broker
from penstock.log.ledger import Batch
from penstock.process import session
from penstock.process.java_client import java_settings
from penstock.settings import Settings
from penstock.sinks import KafkaSink

ROWS = 1_000_000
ROUNDS = 5
TOPIC = "bench.results"


def main() -> None:
    print(f"{ROWS:,} rows of about 200 bytes with key and header; median of {ROUNDS} interleaved rounds\n")
    with running(services=("kafka",)) as settings:
        spark = session(name="bench", partitions=2, shuffle=2)
        Broker(settings).create(TOPIC, 4, 1, {})
        rows = make_rows(spark).cache()
        rows.count()
        ours, theirs = measure(settings, rows)
        spark.stop()
    print("| sink | rows/s | of Spark's |")
    print("|---|---:|---:|")
    print(f"| Spark's own, at least once | {theirs:,.0f} | 1.00 |")
    print(f"| Penstock's, exactly once | {ours:,.0f} | {ours / theirs:.2f} |")


def make_rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 2).selectExpr(
        f"'{TOPIC}' as topic",
        "cast(concat('card-', id % 5000) as binary) as key",
        "cast(concat(md5(string(id)), repeat('x', 160)) as binary) as value",
        "array(named_struct('key', 'penstock.made-by', 'value', "
        "cast(concat('bench.flow topic/0/', id) as binary))) as headers",
    )


def measure(settings: Settings, rows: DataFrame) -> tuple[float, float]:
    """Return the rates of both in rows a second; the first round warms up and does not count."""
    sink = KafkaSink(settings, "bench", lanes=2)
    sink.open()
    options = {f"kafka.{name}": value for name, value in java_settings(settings).items()}
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS + 1):
        began = time.perf_counter()
        sink.write(rows, Batch("bench", number))
        times[0].append(time.perf_counter() - began)
        began = time.perf_counter()
        rows.write.format("kafka").options(**options).option("kafka.compression.type", "lz4").save()
        times[1].append(time.perf_counter() - began)
    ours, theirs = (ROWS / statistics.median(each[1:]) for each in times)
    return ours, theirs
