"""State and memory over a long run with a moving key space: `make soak`, drawn into docs/pictures/flat.svg.

A key lives for a minute and never comes again. What is kept of it has to go, and memory has to stay flat.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bench.plot import Plot
from penstock.process import dedup, session, windows
from penstock.process.windows import Late, agg

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "flat.svg"
RATE, KEYS = 1_000, 5_000  # rows a second, and keys of a minute
_LATE = {"time": "at", "by": "key", "watermark": "5 seconds", "buckets": 8}


def tumbling(rows: DataFrame) -> DataFrame:
    late = Late.refire(within="30 seconds")
    return rows.transform(windows.tumbling("10 seconds", **_LATE, late=late).agg(n=agg.count()))


def sessions(rows: DataFrame) -> DataFrame:
    return rows.transform(windows.session("8 seconds", **_LATE).agg(n=agg.count()))


def sliding(rows: DataFrame) -> DataFrame:
    return rows.transform(windows.sliding("10 seconds", **_LATE).agg(n=agg.count()))


def duplicates(rows: DataFrame) -> DataFrame:
    return rows.transform(
        dedup.first("key", time="at", within="20 seconds", watermark="5 seconds", buckets=8)
    )


FLOWS: tuple[Callable[[DataFrame], DataFrame], ...] = (tumbling, sessions, sliding, duplicates)


def main(minutes: int = 20) -> None:
    state, memory = Plot("State of each operator, MB", "minutes"), Plot("Memory, MB", "minutes")
    spark = session(name="flat", partitions=2, shuffle=2)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        queries = [start(spark, flow, f"{folder}/{flow.__name__}") for flow in FLOWS]
        began = time.monotonic()
        for _ in range(minutes):
            time.sleep(60)
            passed = (time.monotonic() - began) / 60
            for query in queries:
                if query.exception() is not None:
                    raise RuntimeError(f"{query.name} failed: {query.exception()}")
                state.add(query.name, passed, kept(spark, f"{folder}/{query.name}"))
            memory.add("Java heap after a collection", passed, heap(spark))
            memory.add("Python workers", passed, workers())
            print(f"{passed:5.1f} minutes: {state.last()}; {memory.last()}", flush=True)
    spark.stop()
    PICTURE.write_text(Plot.together(state, memory))


def start(spark: SparkSession, flow: Callable[[DataFrame], DataFrame], place: str) -> StreamingQuery:
    rows = spark.readStream.format("rate").option("rowsPerSecond", RATE).load()
    key = F.floor(F.col("value") / (60 * RATE)) * KEYS + F.col("value") % KEYS
    moving = rows.select(F.concat(F.lit("k"), key).alias("key"), F.col("timestamp").alias("at"))
    writer = flow(moving).writeStream.format("noop").outputMode("append").queryName(flow.__name__)
    return writer.trigger(processingTime="2 seconds").option("checkpointLocation", place).start()


def kept(spark: SparkSession, place: str) -> float:
    """What is kept of all keys, in megabytes."""
    found = spark.read.format("statestore").option("stateVarName", "bucket").load(place)
    row = found.agg(F.sum(F.length("value.kept"))).first()
    return (row[0] if row and row[0] else 0) / 2**20


def heap(spark: SparkSession) -> float:
    java = spark._jvm.java.lang  # type: ignore[union-attr]
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    return (runtime.totalMemory() - runtime.freeMemory()) / 2**20


def workers() -> float:
    """What belongs to Python's workers alone: forked ones share the pages of their parent."""
    found = 0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += child.memory_full_info().pss if child.name().startswith("python") else 0
    return found / 2**20


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--minutes", type=int, default=20)
    main(given.parse_args().minutes)
