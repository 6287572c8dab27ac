"""The Redis target against redis-py's pipeline, which loads the same rows without a ledger."""

import statistics
import time
from contextlib import closing

from pyspark.sql import DataFrame

from bench.postgres_sink import LANES, make_rows
from penstock.local import running
from penstock.log.ledger import Batch
from penstock.process import session
from penstock.settings import Settings
from penstock.targets import SinkOptions
from penstock.targets.redis import RedisHashes
from penstock.targets.redis.client import Client, connect

ROWS = 300_000
ROUNDS = 3
AT_ONCE = 10_000  # commands in a pipeline
PIPELINE, TARGET = "redis-py's pipeline, one process", "target, rows and ledger"


def main() -> None:
    print(f"Write {ROWS:,} rows of 6 columns as hashes, appendfsync always; median of {ROUNDS} rounds\n")
    print("| way | rows/s | of the pipeline |")
    print("|---|---:|---:|")
    rates = measure()
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} | {rate / rates[PIPELINE]:.2f} |")


def measure() -> dict[str, float]:
    """Return the median rate of each way, with rounds interleaved."""
    seconds: dict[str, list[float]] = {PIPELINE: [], TARGET: []}
    with running(services=("redis",)) as settings, closing(connect(settings.url("redis"))) as client:
        spark = session(name="bench", partitions=2, shuffle=2)
        rows = make_rows(spark, ROWS).cache()
        texts = as_texts(rows)
        for _ in range(ROUNDS):
            seconds[PIPELINE].append(through_pipeline(client, texts))
            seconds[TARGET].append(through_target(settings, client, rows))
        spark.stop()
    return {name: ROWS / statistics.median(each) for name, each in seconds.items()}


def as_texts(rows: DataFrame) -> list[dict[str, str]]:
    """Make the texts before: the pipeline is not to pay for them."""
    return [
        row.asDict()
        for row in rows.selectExpr(*(f"string({name}) {name}" for name in rows.columns)).collect()
    ]


def through_pipeline(client: Client, rows: list[dict[str, str]]) -> float:
    """Load rows as a careful loop over a batch does: many commands in one request."""
    client.flushall()
    began = time.perf_counter()
    for start in range(0, len(rows), AT_ONCE):
        loading = client.pipeline(transaction=False)
        for row in rows[start : start + AT_ONCE]:
            loading.hset(f"totals:{row['card']}", mapping=row)
        loading.execute()
    return time.perf_counter() - began


def through_target(settings: Settings, client: Client, rows: DataFrame) -> float:
    """Write one batch: shuffle, scripts and ledger."""
    client.flushall()
    target = RedisHashes("totals", key="card")
    sink = target.sink(rows.schema, SinkOptions(settings, f"bench.{time.time_ns()}", lanes=LANES))
    sink.open()
    began = time.perf_counter()
    sink.write(rows, Batch("bench", 0))
    took = time.perf_counter() - began
    sink.close()
    return took
