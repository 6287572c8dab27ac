"""The lake sink beside delta-rs's own `write_deltalake`, which is given rows that are in memory already."""

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame

from bench.postgres_sink import ROWS, make_rows
from penstock.log.ledger import Batch
from penstock.process import session
from penstock.settings import Settings
from penstock.targets import LakeTable, SinkOptions

ROUNDS = 3
OWN = "write_deltalake, from memory"


def main() -> None:
    print(f"Write {ROWS:,} rows of 6 columns to a Delta table; median of {ROUNDS} interleaved rounds\n")
    print("| way | rows/s | of write_deltalake |")
    print("|---|---:|---:|")
    spark = session(name="bench", partitions=2, shuffle=2)
    rows, changed = make_rows(spark, ROWS).cache(), make_rows(spark, ROWS // 10, change=1).cache()
    changed.count()
    table = rows.toArrow()
    with tempfile.TemporaryDirectory() as folder:
        rates = measure(Path(folder), rows, changed, table)
    spark.stop()
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} | {rate / rates[OWN]:.2f} |")


def measure(folder: Path, rows: DataFrame, changed: DataFrame, table: pa.Table) -> dict[str, float]:
    """Return the median rate of each way."""
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        shutil.rmtree(folder, ignore_errors=True)
        seconds = {
            OWN: own(folder / "own", table),
            "sink, append": through_sink(folder / "appended", rows, "append", 0),
            "sink, upsert, all keys new": through_sink(folder / "upserted", rows, "upsert", 0),
        }
        for name, each in seconds.items():
            found.setdefault(name, []).append(ROWS / each)
        tenth = through_sink(folder / "upserted", changed, "upsert", 1)
        found.setdefault("sink, upsert, a tenth of the keys changed", []).append(ROWS / 10 / tenth)
    return {name: statistics.median(rates) for name, rates in found.items()}


def own(path: Path, table: pa.Table) -> float:
    began = time.perf_counter()
    write_deltalake(str(path), table)
    return time.perf_counter() - began


def through_sink(path: Path, rows: DataFrame, write: str, number: int) -> float:
    """Write a batch; the sink is open already, as a flow's is."""
    declared = LakeTable(str(path), key="card", write="upsert" if write == "upsert" else "append")
    sink = declared.sink(rows.schema, SinkOptions(Settings(), "bench"))
    sink.open()
    began = time.perf_counter()
    sink.write(rows, Batch("bench", number, {"log": {0: number}}, {"log": {0: number + 1}}))
    return time.perf_counter() - began
