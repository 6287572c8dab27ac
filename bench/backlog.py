"""Catching up on a backlog: how memory behaves, what limits each flow, and verification beside a replay."""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.local import running
from penstock.log import Broker, Topic, apply
from penstock.pipeline import Pipeline, Runner, verify
from penstock.pipeline.flow import Mode
from penstock.process import session, windows
from penstock.process.spark.java_client import java_settings
from penstock.settings import Settings

WAITING = 10_000_000
VERIFIED = 2_000_000
KEYS = 100_000
Make = Callable[[Topic["View"], str], Pipeline]


@dataclass(frozen=True)
class View(Event):
    url: str
    millis: int
    at: datetime


@dataclass(frozen=True)
class Count(Event, time="start"):
    url: str
    start: datetime
    views: int


def main() -> None:
    with running(services=("kafka",)) as settings, tempfile.TemporaryDirectory() as folder:
        place = replace(settings, data=Path(folder))
        spark = session(place, name="backlog", partitions=4)
        views = filled(spark, place, "bench.views", WAITING)
        print(f"{WAITING:,} waiting events over {KEYS:,} keys; memory is that of Java and Python together\n")
        print("| flow | events/s | most memory, by fifths of the backlog, MB | limited by |")
        print("|---|---:|---|---|")
        for make in (copying, counting):
            print(catch_up(spark, place, make(views, "backlog")), flush=True)
        fewer = filled(spark, place, "bench.fewer", VERIFIED)
        print(f"\n{VERIFIED:,} events, median of 3 turns\n")
        print("| flow | replay, s | verify, s | ratio |\n|---|---:|---:|---:|")
        for make in (copying, counting):
            print(verification(spark, place, fewer, make), flush=True)
        spark.stop()


def filled(spark: SparkSession, settings: Settings, name: str, count: int) -> Topic[View]:
    """A topic with a day of views; Spark writes them, which is quickest."""
    topic = Topic(name, View, key="url", partitions=4)
    apply([topic], Broker(settings))
    rows = spark.range(0, count, 1, 8).selectExpr(
        f"concat('/page/', pmod(hash(id), {KEYS})) as url",
        "id % 5000 as millis",
        f"timestamp_millis(1767225600000 + cast(id * {86_400_000 / count} as long)) as at",
        "uuid() as id",
    )
    at = F.date_format("at", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'").alias("at")
    value = F.to_json(F.struct("id", "url", "millis", at)).alias("value")
    options = {f"kafka.{each}": value for each, value in java_settings(settings).items()}
    written = rows.select(F.lit(name).alias("topic"), F.col("url").alias("key"), value)
    written.write.format("kafka").options(**options).option("kafka.compression.type", "lz4").save()
    return topic


def copying(views: Topic[View], name: str) -> Pipeline:
    pipeline = Pipeline(f"copy-{name}")
    target = Topic(f"bench.slow-{name}", View, key="url", partitions=4)

    @pipeline.flow(reads={"views": views}, writes=target)
    def slow(views: DataFrame) -> DataFrame:
        return views.where("millis > 1000")

    return pipeline


def counting(views: Topic[View], name: str) -> Pipeline:
    pipeline = Pipeline(f"count-{name}")
    target = Topic(f"bench.counts-{name}", Count, key="url", partitions=4)
    hourly = windows.tumbling("1 hour", time="at", by="url", watermark="10 minutes")

    @pipeline.flow(reads={"views": views}, writes=target, output="append")
    def hours(views: DataFrame) -> DataFrame:
        counted = views.transform(hourly.agg(F.count("*").alias("views")))
        return counted.select("url", "start", "views")

    return pipeline


def catch_up(spark: SparkSession, settings: Settings, pipeline: Pipeline) -> str:
    """Run a flow over the backlog; return its row of the table."""
    memory: list[float] = []
    with sampling(memory), Runner(pipeline, settings, spark=spark, once=True) as runner:
        seconds = timed(runner.wait)
        [flow] = pipeline.flows
        batches = runner.progress.recent(pipeline.name, flow)
    limits = [each.bottleneck.part for each in batches if each.bottleneck is not None]
    most = max(set(limits), key=limits.count)
    fifth = max(1, len(memory) // 5)
    fifths = [f"{max(memory[start : start + fifth]):,.0f}" for start in range(0, 5 * fifth, fifth)]
    rate, count = f"{WAITING / seconds:,.0f}", f"{limits.count(most)} of {len(limits)} batches"
    return f"| {flow} | {rate} | {' '.join(fifths)} | {most} ({count}) |"


@contextmanager
def sampling(memory: list[float]) -> Iterator[None]:
    """Look once a second at what this process and all that it started have in memory, in megabytes."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(1):
            memory.append(sum(map(own_memory, psutil.Process().children(recursive=True))) / 2**20)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def own_memory(process: psutil.Process) -> int:
    """The memory of Java and of Python's workers; forked ones share the pages of their parent."""
    try:
        wanted = process.name().startswith(("java", "python")) and "kafka.Kafka" not in process.cmdline()
        return int(process.memory_full_info().pss) if wanted else 0
    except psutil.Error:
        return 0


def verification(spark: SparkSession, settings: Settings, views: Topic[View], make: Make) -> str:
    """Run a flow, replay it into another topic, and verify it; return its row of the table."""
    pipeline = make(views, "verified")
    run(spark, settings, pipeline)
    replay, check = [], []
    for turn in range(3):
        again = make(views, f"replayed-{turn}")
        replay.append(timed(lambda again=again: run(spark, settings, again, mode="replay")))
        check.append(timed(lambda: verify(pipeline, settings, spark)))
    one, other = statistics.median(replay), statistics.median(check)
    return f"| {next(iter(pipeline.flows))} | {one:.1f} | {other:.1f} | {other / one:.2f} |"


def run(spark: SparkSession, settings: Settings, pipeline: Pipeline, mode: Mode | None = None) -> None:
    with Runner(pipeline, settings, mode=mode, spark=spark, once=True) as runner:
        runner.wait()


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
