"""One metric twice: by a batch and a speed layer (Lambda), and by one stream that is also its replay (Kappa).

The metric is the revenue of each product in each hour. Sales come late (from telephones without a network)
and twice (sent again). An hour of event time passes between two looks at it.
"""

import inspect
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Annotated, Any

import psycopg
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.cpu import measured
from penstock.events import Event, Precision
from penstock.local import running
from penstock.log import Broker, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.process import dedup, read, session, windows
from penstock.process.windows import Late, agg
from penstock.settings import Settings
from penstock.targets import PostgresTable

HOURS, SALES, PRODUCTS = 12, 20_000, 50  # sales in an hour
TWICE, LATE, LATEST = 0.01, 0.02, 3.0  # shares, and hours
START, HOUR = datetime(2026, 1, 1, tzinfo=UTC), timedelta(hours=1)
Money = Annotated[Decimal, Precision(12, 2)]
Revenue = dict[tuple[str, datetime], Decimal]


@dataclass(frozen=True)
class Sale(Event):
    product: str
    amount: Money
    at: datetime


sales = Topic("bench.sales", Sale, key="product", partitions=2)
speed_layer, kappa = Pipeline("speed"), Pipeline("kappa")


def batch(sales: DataFrame) -> DataFrame:
    """Lambda's batch layer: all sales once more, each counted once."""
    hour = F.date_trunc("hour", "at").alias("hour")
    return sales.dropDuplicates(["id"]).groupBy("product", hour).agg(F.sum("amount").alias("revenue"))


@speed_layer.flow(
    reads={"sales": sales}, writes=PostgresTable("speed", key=("product", "hour"), write="upsert")
)
def speed(sales: DataFrame) -> DataFrame:
    """Lambda's speed layer: what has come since, quickly; late sales and duplicates are the batch's."""
    hours = windows.tumbling("1 hour", time="at", by="product", watermark="10 minutes", emit="early")
    found = sales.transform(hours.agg(F.sum("amount").alias("revenue")))
    return found.select("product", F.col("start").alias("hour"), F.col("revenue").cast("decimal(22,2)"))


def served(connection: Any, batched: Revenue, until: datetime) -> Revenue:
    """Lambda's serving layer: the batch as far as it goes, behind it what the speed layer has."""
    return batched | {
        (product, hour): revenue
        for product, hour, revenue in connection.execute("SELECT product, hour, revenue FROM speed")
        if hour >= until
    }


@kappa.flow(
    reads={"sales": sales},
    writes=PostgresTable("kappa", key=("product", "start"), write="upsert"),
    output="append",
)
def revenue(sales: DataFrame) -> DataFrame:
    """Kappa: each sale once, every hour on time, and corrected when a late sale comes."""
    once = sales.transform(dedup.first("id", time="at", within="12 hours", watermark="10 minutes"))
    late = Late.refire(within="12 hours")
    hours = windows.tumbling("1 hour", time="at", by="product", watermark="10 minutes", late=late)
    return once.transform(hours.agg(revenue=agg.sum("amount"))).select("product", "start", "revenue", "rows")


@dataclass
class Way:
    """One of the two, as it went."""

    name: str
    functions: tuple[Callable[..., Any], ...]
    cpu: float = 0.0
    wrong: list[int] = field(default_factory=list)  # cells that were not true, at each look

    @property
    def lines(self) -> int:
        """Lines of code, without those that are empty or explain."""
        return sum(_lines(each) for each in self.functions)


@dataclass
class Truth:
    """The revenue of all sales that have come so far, each counted once."""

    revenue: Revenue = field(default_factory=lambda: defaultdict(Decimal))
    _known: set[str] = field(default_factory=set)

    def add(self, arrived: list[Sale]) -> None:
        for sale in arrived:
            if sale.id not in self._known:
                self._known.add(sale.id)
                self.revenue[sale.product, _hour(sale.at)] += sale.amount

    def differs(self, found: Revenue, closed: datetime) -> int:
        """How many cells are not true, of hours that have ended."""
        ended = {cell: due for cell, due in self.revenue.items() if cell[1] + HOUR <= closed}
        return sum(found.get(cell) != due for cell, due in ended.items())


def main() -> None:
    with running() as settings, tempfile.TemporaryDirectory() as folder:
        place = replace(settings, data=Path(folder))
        apply([sales], Broker(place))
        spark = session(place, name="lambda-kappa", partitions=4, shuffle=2)
        ways = look_every_hour(spark, place)
        spark.stop()
    show(ways)


def look_every_hour(spark: SparkSession, settings: Settings) -> list[Way]:
    """Let the hours pass; a quarter after each, let both work, and compare what they say with the truth."""
    layers, stream = Way("Lambda", (batch, speed, served)), Way("Kappa", (revenue,))
    truth, batched = Truth(), Revenue()
    with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
        for hour, arrived in enumerate(arrivals(), 1):
            closed = START + hour * HOUR
            truth.add(arrived)
            with Producer(settings) as producer:
                producer.send_all(sales, arrived)
            with measured() as used:
                _run(speed_layer, settings, spark)
            layers.wrong.append(truth.differs(served(connection, batched, closed - HOUR), closed))
            layers.cpu += used.seconds
            with measured() as used:
                batched = _collected(batch(read(spark, sales, settings)))
            layers.cpu += used.seconds
            with measured() as used:
                _run(kappa, settings, spark)
            stream.wrong.append(truth.differs(_table(connection), closed))
            stream.cpu += used.seconds
            print(
                f"hour {hour}: of {len(truth.revenue):,} cells wrong: {layers.wrong[-1]}, {stream.wrong[-1]}"
            )
    return [layers, stream]


def arrivals(seed: int = 1) -> Iterator[list[Sale]]:
    """Yield what comes in each hour, from a quarter past to a quarter past."""
    random = Random(seed)
    coming: list[tuple[datetime, Sale]] = []
    for number in range((HOURS + 1) * SALES):
        at = START + number * HOUR / SALES
        price = Decimal(random.randrange(100, 10_000)) / 100
        sale = Sale(f"product-{random.randrange(PRODUCTS):02d}", price, at, id=f"sale-{number}")
        late = random.uniform(0, LATEST) if random.random() < LATE else random.uniform(0, 0.05)
        coming.append((at + late * HOUR, sale))
        if random.random() < TWICE:
            coming.append((at + (late + random.uniform(0, 0.5)) * HOUR, sale))
    coming.sort(key=lambda each: each[0])
    for hour in range(1, HOURS + 1):
        begin, end = START + (hour - 0.75) * HOUR, START + (hour + 0.25) * HOUR
        first = hour == 1
        yield [sale for came, sale in coming if (first or begin <= came) and came < end]


def _run(pipeline: Pipeline, settings: Settings, spark: SparkSession) -> None:
    with Runner(pipeline, settings, once=True, spark=spark) as runner:
        runner.wait()


def _collected(rows: DataFrame) -> Revenue:
    return {(row.product, row.hour.replace(tzinfo=UTC)): row.revenue for row in rows.collect()}


def _table(connection: Any) -> Revenue:
    found = connection.execute("SELECT product, start, revenue FROM kappa")
    return {(product, start): revenue for product, start, revenue in found}


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _lines(function: Callable[..., Any]) -> int:
    source = inspect.getsource(function).splitlines()
    return sum(bool(line.strip()) and not line.strip().startswith('"""') for line in source)


def show(ways: list[Way]) -> None:
    print(
        f"\n{HOURS} hours of {SALES:,} sales, {TWICE:.0%} twice, {LATE:.0%} up to {LATEST:.0f} hours late\n"
    )
    print("| | lines of code | wrong cells at a look, of those that have ended | CPU seconds |")
    print("|---|---:|---:|---:|")
    for way in ways:
        print(f"| {way.name} | {way.lines} | {sum(way.wrong) / len(way.wrong):,.1f} | {way.cpu:,.0f} |")
