"""The exactly-once Kafka sink against Spark's own, which is at-least-once: the sinks alone, and in flows."""

import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.events import Event
from penstock.local import running
from penstock.log import Broker, Producer, Topic, apply
from penstock.log.ledger import Batch
from penstock.pipeline import Pipeline, Runner
from penstock.pipeline.progress import ProgressStore
from penstock.process import session
from penstock.process.spark.java_client import java_settings
from penstock.settings import Settings
from penstock.targets import KafkaSink, SinkOptions

ROWS = 1_000_000
ROUNDS = 5
TOPIC = "bench.results"
BATCH = 100_000  # events in a batch of a flow
WARM = 2  # batches that do not count


@dataclass(frozen=True)
class Payment(Event):
    card: str
    amount: float
    note: str
    at: datetime


payments = Topic("bench.payments", Payment, key="card", partitions=4)


def main() -> None:
    print(f"{ROWS:,} rows of about 200 bytes with key and header; median of {ROUNDS} interleaved rounds\n")
    with running(services=("kafka",)) as settings, tempfile.TemporaryDirectory() as folder:
        spark = session(name="bench", partitions=4, shuffle=2)
        Broker(settings).create(TOPIC, 4, 1, {})
        rows = make_rows(spark).cache()
        rows.count()
        ours, theirs = measure(settings, rows)
        rows.unpersist()
        least, once = measure_flows(replace(settings, data=Path(folder)), spark)
        spark.stop()
    print("| what writes | rows/s | of Spark's |")
    print("|---|---:|---:|")
    print(f"| Spark's sink, at least once | {theirs:,.0f} | 1.00 |")
    print(f"| Penstock's sink, exactly once | {ours:,.0f} | {ours / theirs:.2f} |")
    print(f"| a flow, at least once (Spark's sink) | {least:,.0f} | 1.00 |")
    print(f"| the same flow, exactly once | {once:,.0f} | {once / least:.2f} |")


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
    sink = KafkaSink(SinkOptions(settings, "bench"))
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


def measure_flows(settings: Settings, spark: SparkSession) -> tuple[float, float]:
    """Return the rates of a flow from topic to topic, batch by batch, in two guarantees."""
    apply([payments], Broker(settings))
    now = datetime.now(UTC)
    with Producer(settings) as producer:
        made = (Payment(f"card-{number % 5000}", number / 4, "x" * 100, now) for number in range(ROWS))
        producer.send_all(payments, made)
    guarantees = 2 * ("at-least-once", "exactly-once")  # the first round warms up and does not count
    rates = [flow_rate(settings, spark, guarantee, number) for number, guarantee in enumerate(guarantees)]
    return rates[2], rates[3]


def flow_rate(settings: Settings, spark: SparkSession, guarantee: Any, number: int) -> float:
    pipeline = Pipeline(f"{guarantee}-{number}")
    target = Topic(f"bench.{pipeline.name}", Payment, key="card", partitions=4)
    options = {"maxOffsetsPerTrigger": str(BATCH)}

    @pipeline.flow(reads={"payments": payments}, writes=target, guarantee=guarantee, options=options)
    def dearer(payments: DataFrame) -> DataFrame:
        return payments.withColumn("amount", payments.amount * 2)

    with Runner(pipeline, settings, spark=spark, once=True) as runner:
        runner.wait()
    batches = ProgressStore(settings.data / "progress.db").recent(pipeline.name, "dearer")
    counted = [each for each in batches if each.batch >= WARM]
    return sum(each.rows for each in counted) / sum(each.seconds for each in counted)
