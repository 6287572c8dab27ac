"""The PostgreSQL sink against inserting row by row, and against COPY into the same table with its key."""

import io
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from pyarrow import csv
from pyspark.sql import DataFrame, SparkSession

from penstock.local import running
from penstock.log.ledger import Batch
from penstock.process import session
from penstock.settings import Settings, reveal
from penstock.targets import PostgresSink, PostgresTable, SinkOptions

ROWS = 1_000_000
ONE_BY_ONE = 20_000
ROUNDS = 3
LANES = 2
TABLE = PostgresTable("public.bench_totals", key="card", write="upsert")
COLUMNS = """
    card text PRIMARY KEY, amount numeric(12,2), count bigint, lat double precision,
    at timestamp with time zone, note text"""
UPSERT = """
    INSERT INTO public.bench_totals AS t (card, amount, count, lat, at, note) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (card) DO UPDATE SET amount = excluded.amount, count = excluded.count, lat = excluded.lat,
        at = excluded.at, note = excluded.note"""


@dataclass(frozen=True)
class Way:
    """A way of writing, how many rows it is given, and what does it."""

    name: str
    rows: int
    write: Callable[[], float]


def main() -> None:
    print(f"Upsert {ROWS:,} rows of 6 columns by a text key; median of {ROUNDS} interleaved rounds\n")
    print("| way | rows | rows/s | of COPY |")
    print("|---|---:|---:|---:|")
    with running(services=("postgres",)) as settings:
        spark = session(name="bench", partitions=2, shuffle=2)
        rows = make_rows(spark, ROWS).cache()
        rates = measure(ways(settings, spark, rows))
        spark.stop()
    for name, (count, rate) in rates.items():
        print(f"| {name} | {count:,} | {rate:,.0f} | {rate / rates['COPY into the empty table'][1]:.2f} |")


def make_rows(spark: SparkSession, count: int, change: int = 0) -> DataFrame:
    """Return rows in the order of a log: their keys come as they come, not sorted."""
    return spark.range(0, count, 1, LANES).selectExpr(
        f"concat('card-', (id * 829348951) % {ROWS}) as card",
        "cast((id % 100000) / 100 as decimal(12,2)) as amount",
        f"id + {change} as count",
        "id / 3 as lat",
        "timestamp_millis(1767225600000 + id) as at",
        "concat('some text ', id % 1000) as note",
    )


def ways(settings: Settings, spark: SparkSession, rows: DataFrame) -> list[Way]:
    """Return the ways to compare; a sink's later batches find all keys in the table."""
    address, few = reveal(settings.postgres or ""), make_rows(spark, ONE_BY_ONE)
    text = as_csv(rows)
    changed = make_rows(spark, ROWS, change=1).cache()
    changed.count()
    rows.count()
    return [
        Way(
            "row by row, a commit for each",
            ONE_BY_ONE // 10,
            lambda: one_by_one(address, few.limit(ONE_BY_ONE // 10), True),
        ),
        Way("row by row, one commit", ONE_BY_ONE, lambda: one_by_one(address, few, False)),
        Way("COPY into the empty table", ROWS, lambda: copy(address, text)),
        Way("sink, all keys new", ROWS, lambda: through_sink(settings, rows, fresh=True)),
        Way("sink, all keys there and equal", ROWS, lambda: through_sink(settings, rows, fresh=False)),
        Way("sink, all keys there and changed", ROWS, lambda: through_sink(settings, changed, fresh=False)),
    ]


def measure(compared: list[Way]) -> dict[str, tuple[int, float]]:
    """Return how many rows each way was given, and its median rate."""
    seconds: dict[str, list[float]] = {way.name: [] for way in compared}
    for _ in range(ROUNDS):
        for way in compared:
            seconds[way.name].append(way.write())
    return {way.name: (way.rows, way.rows / statistics.median(seconds[way.name])) for way in compared}


def as_csv(rows: DataFrame) -> bytes:
    text = io.BytesIO()
    csv.write_csv(rows.toArrow(), text, csv.WriteOptions(include_header=False))
    return text.getvalue()


def empty_table(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("DROP TABLE IF EXISTS public.bench_totals")
    connection.execute(f"CREATE TABLE public.bench_totals ({COLUMNS})".encode())
    connection.execute("CHECKPOINT")  # so that nobody pays for what another wrote


def one_by_one(address: str, rows: DataFrame, each: bool) -> float:
    """Insert rows as a loop over a batch does, with a commit for each row or one for all."""
    values = [tuple(row) for row in rows.collect()]
    with psycopg.connect(address, autocommit=True) as connection:
        empty_table(connection)
        connection.autocommit = each
        began = time.perf_counter()
        for row in values:
            connection.execute(UPSERT, row)
        connection.commit()
        return time.perf_counter() - began


def copy(address: str, text: bytes) -> float:
    """Copy lines that were made before; nothing on this side is faster."""
    with psycopg.connect(address, autocommit=True) as connection:
        empty_table(connection)
        began = time.perf_counter()
        with connection.cursor().copy("COPY public.bench_totals FROM STDIN (FORMAT csv)") as into:
            into.write(text)
        return time.perf_counter() - began


def through_sink(settings: Settings, rows: DataFrame, *, fresh: bool) -> float:
    """Write one batch: shuffle, stage, merge and ledger."""
    with psycopg.connect(reveal(settings.postgres or ""), autocommit=True) as connection:
        if fresh:
            empty_table(connection)
        else:
            connection.execute("VACUUM public.bench_totals")
            connection.execute("CHECKPOINT")
    sink = PostgresSink(TABLE, rows.schema, SinkOptions(settings, f"bench.{time.time_ns()}", lanes=LANES))
    sink.open()
    began = time.perf_counter()
    sink.write(rows, Batch("bench", 0))
    took = time.perf_counter() - began
    sink.close()
    return took
