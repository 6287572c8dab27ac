"""Enrichment: events beside a table of up to 50 million rows that change, and what an event costs."""

import statistics
import tempfile
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession

from bench.joins import SOURCE, run, write_events, write_rows
from bench.state import memory
from penstock.process import joins, session

ROWS, LARGE, LOADED = 5_000_000, 50_000_000, 1_000_000  # of the table; loaded in a batch
EVENTS, UPDATES, BATCHES = 100_000, 100, 12  # a batch is a second of what is aimed at
AIM = 100_000  # events/s
SCHEMAS = (f"card string, amount double, {SOURCE}", f"card string, home string, {SOURCE}")


def main() -> None:
    measure(ROWS)


def large() -> None:
    """The same beside 50 million rows."""
    measure(LARGE)


def measure(rows: int) -> None:
    spark = session(name="bench", partitions=2, shuffle=2)
    print(f"batches of {EVENTS:,} events beside a table, of which {UPDATES} rows change in each\n")
    print("| rows | loaded, rows/s | batch, median | events/s | CPU for an event | memory | for 100,000/s |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        print(line(spark, Path(folder), rows), flush=True)
    spark.stop()


def line(spark: SparkSession, folder: Path, rows: int) -> str:
    write_events(spark, folder / "events", 0, rows, 0)
    for number in range(rows // LOADED):
        write_rows(spark, folder / "table", f"id + {number * LOADED}", LOADED)
    loading = sum(batches(spark, folder))
    for number in range(BATCHES):
        write_events(spark, folder / "events", EVENTS, rows, number)
        write_rows(spark, folder / "table", f"cast(rand({number}) * {rows} as long)", UPDATES)
    before = cpu_seconds()
    taken = batches(spark, folder)
    cost = (cpu_seconds() - before) / (BATCHES * EVENTS)
    batch = statistics.median(taken[2:])
    return (
        f"| {rows:,} | {rows / loading:,.0f} | {batch:.2f} s | {EVENTS / batch:,.0f} | {1e6 * cost:.1f} µs "
        f"| {memory() / 2**30:.1f} GiB | {AIM * cost:.1f} cores |"
    )


def batches(spark: SparkSession, folder: Path) -> list[float]:
    """Take what is new of both sides; return how long each batch took."""

    def query(events: DataFrame, table: DataFrame) -> DataFrame:
        return events.transform(joins.latest(table, on="card", name="profile"))

    return run(spark, folder, ("events", "table"), SCHEMAS, query, folder / "state", "update")


def cpu_seconds() -> float:
    """What this process and all that it has started have used of the processors."""
    own = psutil.Process()
    times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return sum(each.user + each.system for each in times)
