"""Joins: two streams against Spark's own join, events beside a growing table, and a view of two tables."""

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.state import memory, taken
from penstock.process import joins, session

ROWS, BATCHES, TURNS = 50_000, 6, 5  # of two streams: rows of each in a batch, and how often all is run
EVENTS, UPDATES, STEADY = 100_000, 100, 12  # in each batch beside a table
LOADED = 1_000_000
TABLES, LARGE = (1_000_000, 10_000_000), (1_000_000, 10_000_000, 50_000_000)
ORDERS, PRODUCTS, CHANGED, TOUCHED = 1_000_000, 100_000, 20_000, 10_000
PLACE = "named_struct('topic', 't', 'partition', 0, 'offset', id, 'written', timestamp_micros(id)) as _source"
SOURCE = "_source struct<topic:string,partition:int,offset:long,written:timestamp>"
# What the session chooses otherwise for state.
STORE = "spark.sql.streaming.stateStore"
STATE = "org.apache.spark.sql.execution.streaming.state"
DEFAULTS = {
    f"{STORE}.providerClass": f"{STATE}.HDFSBackedStateStoreProvider",
    f"{STORE}.checkpointFormatVersion": "1",
    f"{STORE}.rocksdb.changelogCheckpointing.enabled": "false",
    f"{STORE}.rocksdb.trackTotalNumberOfRows": "true",
}
ROCKSDB = {f"{STORE}.providerClass": f"{STATE}.RocksDBStateStoreProvider"}
FORM_4 = {"spark.sql.streaming.join.stateFormatVersion": "4"}
Query = Callable[[DataFrame, DataFrame], DataFrame]


def main(tables: tuple[int, ...] = TABLES) -> None:
    spark = session(name="bench", partitions=2, shuffle=2)
    with tempfile.TemporaryDirectory() as folder:
        two_streams(spark, Path(folder))
        beside_a_table(spark, Path(folder), tables)
        a_view(spark, Path(folder))
    spark.stop()


def large() -> None:
    """The same with a table of 50 million rows."""
    main(LARGE)


def two_streams(spark: SparkSession, folder: Path) -> None:
    """Events within 10 seconds of each other, about one match for each; a batch is 20 seconds."""
    print(f"two streams, batches of {ROWS:,} rows of each; all have run before they are measured\n")
    schema = "ad long, at timestamp, n long"
    for number in range(BATCHES):
        for side in ("left", "right"):
            at = f"timestamp_micros({number} * 20000000 + id * 400)"
            made = spark.range(0, ROWS, 1, 1).selectExpr(
                f"cast(rand({number}{side == 'left':d}) * 25000 as long) as ad", f"{at} as at", "id as n"
            )
            made.write.mode("append").parquet(str(folder / side))

    columns = [
        f"{side}.{name} as {side[0]}_{name}" for side in ("left", "right") for name in ("ad", "at", "n")
    ]

    def ours(left: DataFrame, right: DataFrame) -> DataFrame:
        within = joins.within(right, on="ad", time="at", before="10 seconds", watermark="1 second")
        return left.transform(within).selectExpr(*columns)

    def spark_own(left: DataFrame, right: DataFrame) -> DataFrame:
        one, other = (
            rows.selectExpr(f"ad as {side}_ad", f"at as {side}_at", f"n as {side}_n").withWatermark(
                f"{side}_at", "1 second"
            )
            for rows, side in ((left, "l"), (right, "r"))
        )
        near = "l_ad = r_ad and r_at >= l_at - interval 10 seconds and r_at <= l_at"
        return one.join(other, F.expr(near))

    sides = {
        "`joins.within`": (ours, {}),
        "`joins.within`, form 4 of state": (ours, FORM_4),
        "Spark's own, its defaults": (spark_own, DEFAULTS),
        "Spark's own, its defaults with RocksDB": (spark_own, DEFAULTS | ROCKSDB),
        "Spark's own, Penstock's settings": (spark_own, {}),
        "Spark's own, Penstock's settings, form 4": (spark_own, FORM_4),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(TURNS):
        for name in sorted(sides, reverse=turn % 2 == 1):  # the later one has the warmer Java
            query, settings = sides[name]
            with changed(spark, settings):
                place = folder / f"{name}-{turn}"
                seconds = run(spark, folder, ("left", "right"), (schema, schema), query, place)
            times[name] += seconds[1:] if turn else []  # all are warm then
    base = statistics.median(times["Spark's own, Penstock's settings"])
    print("| | rows/s | of Spark's by the same settings |\n|---|---:|---:|")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"| {name} | {2 * ROWS / median:,.0f} | {base / median:.2f} |", flush=True)


@contextmanager
def changed(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Change settings of a session for a while."""
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def beside_a_table(spark: SparkSession, folder: Path, tables: tuple[int, ...]) -> None:
    print(f"\nbatches of {EVENTS:,} events beside a table, of which {UPDATES} rows change in each\n")
    print("| rows of the table | loaded, rows/s | batch, median | events/s | of the first | memory |")
    print("|---:|---:|---:|---:|---:|---:|")
    schemas = (f"card string, amount double, {SOURCE}", f"card string, home string, {SOURCE}")

    def query(events: DataFrame, table: DataFrame) -> DataFrame:
        return events.transform(joins.latest(table, on="card", name="profile"))

    first = None
    for rows in tables:
        own, place = folder / f"beside{rows}", folder / f"beside{rows}-state"
        write_events(spark, own / "events", 0, rows, 0)
        for number in range(rows // LOADED):
            write_rows(spark, own / "table", f"id + {number * LOADED}", LOADED)
        loading = run(spark, own, ("events", "table"), schemas, query, place, "update")
        for number in range(STEADY):
            write_events(spark, own / "events", EVENTS, rows, number)
            write_rows(spark, own / "table", f"cast(rand({number}) * {rows} as long)", UPDATES)
        batch = statistics.median(run(spark, own, ("events", "table"), schemas, query, place, "update")[2:])
        first = first or batch
        print(
            f"| {rows:,} | {rows / sum(loading):,.0f} | {batch:.2f} s | {EVENTS / batch:,.0f} "
            f"| {batch / first:.2f} | {memory() / 2**30:.1f} GiB |",
            flush=True,
        )


def a_view(spark: SparkSession, folder: Path) -> None:
    print(f"\na view of {ORDERS:,} orders of {PRODUCTS:,} products, {TOUCHED:,} of them of one\n")
    schemas = (f"order long, product long, {SOURCE}", f"product long, price long, {SOURCE}")
    own, place = folder / "view", folder / "view-state"

    def query(orders: DataFrame, products: DataFrame) -> DataFrame:
        return orders.transform(joins.tables(products, on="product", keys=("order", "product"), how="left"))

    def write(side: str, count: int, *columns: str) -> None:
        made = spark.range(0, count, 1, 1).selectExpr(*columns, PLACE)
        made.write.mode("append").parquet(str(own / side))

    def batches() -> list[float]:
        return run(spark, own, ("orders", "products"), schemas, query, place)

    write("products", PRODUCTS, "id as product", "100 as price")
    for number in range(ORDERS // 100_000):
        product = f"if(id < {TOUCHED // 10}, 0, cast(rand({number}) * {PRODUCTS} as long))"
        write("orders", 100_000, f"id + {number * 100_000} as order", f"{product} as product")
    loading = sum(batches())
    for number in range(STEADY):
        order, product = (
            f"cast(rand({number}{place}) * {most} as long)" for place, most in ((0, ORDERS), (1, PRODUCTS))
        )
        write("orders", CHANGED, f"{order} as order", f"{product} as product")
    changing = statistics.median(batches()[2:])
    for price in range(STEADY):  # one in each batch
        write("products", 1, "0L as product", f"{101 + price} as price")
    pricing = statistics.median(batches()[2:])
    print("| | |\n|---|---:|")
    print(f"| loaded | {(ORDERS + PRODUCTS) / loading:,.0f} rows/s |")
    print(f"| orders changed, {CHANGED:,} in a batch | {CHANGED / changing:,.0f} changes/s |")
    print(f"| a price changed, and its {TOUCHED:,} orders in the view | {pricing:.2f} s |", flush=True)


def write_events(spark: SparkSession, folder: Path, count: int, cards: int, seed: int) -> None:
    card = f"concat('card-', cast(rand({seed}7) * {cards} as long)) as card"
    made = spark.range(0, count, 1, 1).selectExpr(card, "id + 0.5D as amount", PLACE)
    made.write.mode("append").parquet(str(folder))


def write_rows(spark: SparkSession, folder: Path, number: str, count: int) -> None:
    made = spark.range(0, count, 1, 1).selectExpr(
        f"concat('card-', {number}) as card", "'home' as home", PLACE
    )
    made.write.mode("append").parquet(str(folder))


def run(
    spark: SparkSession,
    folder: Path,
    sides: tuple[str, str],
    schemas: tuple[str, str],
    query: Query,
    place: Path,
    output: str = "append",
) -> list[float]:
    """Take what is new of both sides, a file of each at a time; return how long each batch took."""
    left, right = (
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / side))
        for side, schema in zip(sides, schemas, strict=True)
    )
    stream = query(left, right).writeStream.format("noop").outputMode(output)
    return taken(stream.trigger(availableNow=True).option("checkpointLocation", str(place)).start())
