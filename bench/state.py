"""Keyed state in Python: the same count and sum with Spark's own operator, row by row, and over columns."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from penstock.process import keyed, session

KEYS, ROWS, BATCHES = 100_000, 100_000, 3  # against Spark's own
MANY, LOADED, TOUCHED, STEADY = 10_000_000, 1_000_000, 100_000, 60  # one key of a hundred in each batch
SCHEMA = "key string, amount double"
RESULT = "key string, n long, total double"
Query = Callable[[DataFrame], DataFrame]


class CountAndSum(StatefulProcessor):
    """As Spark's documentation has it: a call for each key, a frame for its rows, a value for its state."""

    def init(self, handle: Any) -> None:
        self._state = handle.getValueState("kept", "n long, total double")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: ARG002
        import pandas as pd  # type: ignore[import-untyped]

        n, total = self._state.get() or (0, 0.0)
        for frame in rows:
            n, total = n + len(frame), total + float(frame["amount"].sum())
        self._state.update((n, total))
        yield pd.DataFrame({"key": [key[0]], "n": [n], "total": [total]})

    def close(self) -> None:
        pass


def by_spark(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").transformWithStateInPandas(CountAndSum(), RESULT, "Append", "None")


def count_and_sum(rows: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    added = rows.group_by("key").agg(pl.len().alias("more"), pl.col("amount").sum())
    n, total = pl.col("n").fill_null(0) + pl.col("more"), pl.col("total").fill_null(0) + pl.col("amount")
    kept = state.join(added, on="key").select("key", n.alias("n"), total.alias("total"))
    return kept, kept


def over_columns(rows: DataFrame) -> DataFrame:
    return rows.transform(
        keyed.stateful(count_and_sum, by="key", state="n long, total double", returns=RESULT)
    )


def main() -> None:
    spark = session(name="bench", partitions=2, shuffle=2)
    with tempfile.TemporaryDirectory() as folder:
        against_spark(spark, Path(folder))
        many_keys(spark, Path(folder))
    spark.stop()


def against_spark(spark: SparkSession, folder: Path) -> None:
    print(f"{KEYS:,} keys, batches of {ROWS:,} rows: the {BATCHES - 1} after the first\n")
    for number in range(BATCHES):
        write(spark, folder / "few", number, ROWS, KEYS)
    times = {
        name: run(spark, folder / "few", query, folder / name)[1:]
        for name, query in (("over columns", over_columns), ("Spark's own", by_spark))
    }
    base = ROWS / statistics.median(times["Spark's own"])
    print("| | rows/s | of Spark's |\n|---|---:|---:|")
    for name, taken in times.items():
        rate = ROWS / statistics.median(taken)
        print(f"| {name} | {rate:,.0f} | {rate / base:.1f} |")


def many_keys(spark: SparkSession, folder: Path) -> None:
    print(f"\nbatches of {TOUCHED:,} rows of random keys, {STEADY} of them after all keys were there once\n")
    print("| keys | batch, median | 95 of 100 | longest | rows/s | memory | checkpoint |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for keys in (MANY // 10, MANY):
        source, place = folder / f"{keys}", folder / f"state{keys}"
        loads = keys // LOADED
        for number in range(loads):
            ids = spark.range(number * LOADED, (number + 1) * LOADED, 1, 1)
            ids.selectExpr("concat('key-', id) as key", "1.0D as amount").write.mode("append").parquet(
                str(source)
            )
        for number in range(STEADY):
            write(spark, source, number, TOUCHED, keys)
        taken = run(spark, source, over_columns, place)[loads:]
        steady = sorted(taken)
        median, most = statistics.median(steady), steady[int(0.95 * len(steady))]
        print(
            f"| {keys:,} | {median:.2f} s | {most:.2f} s | {steady[-1]:.2f} s "
            f"| {TOUCHED / statistics.mean(steady):,.0f} "
            f"| {memory() / 2**30:.1f} GiB | {_size(place) / 2**30:.1f} GiB |"
        )


def write(spark: SparkSession, folder: Path, seed: int, rows: int, keys: int) -> None:
    made = spark.range(0, rows, 1, 1).selectExpr(
        f"concat('key-', cast(rand({seed}) * {keys} as long)) as key", "id % 1000 + 0.5D as amount"
    )
    made.write.mode("append").parquet(str(folder))


def run(spark: SparkSession, source: Path, query: Query, place: Path) -> list[float]:
    """Take files one by one, in the order in which they were written; return how long each batch took."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
    stream = query(rows).writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    return taken(stream.option("checkpointLocation", str(place)).start())


def taken(running: StreamingQuery) -> list[float]:
    """Wait until a query has done its work; return how long each of its batches took."""
    times: dict[int, float] = {}
    while running.isActive:
        for each in running.recentProgress:
            times[each["batchId"]] = each["batchDuration"] / 1000
        time.sleep(0.5)
    running.awaitTermination()
    for each in running.recentProgress:
        times[each["batchId"]] = each["batchDuration"] / 1000
    return [times[number] for number in sorted(times)]


def memory() -> int:
    """What this process and those that it has started hold for themselves, mapped files left out."""
    own = psutil.Process()
    return sum(each.memory_full_info().uss for each in (own, *own.children(recursive=True)))


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
