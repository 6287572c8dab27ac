"""A small shop: the pipeline that the tests of flows run, by themselves and through the command line."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Annotated

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.events import Event, Precision
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.targets import PostgresTable

Money = Annotated[Decimal, Precision(12, 2)]


@dataclass(frozen=True)
class Sale(Event):
    customer: str
    amount: Money
    at: datetime


@dataclass(frozen=True)
class Receipt(Event):
    customer: str
    amount: Money
    tax: Money
    at: datetime


@dataclass(frozen=True)
class Suspect(Event):
    customer: str
    amount: Money
    at: datetime


sales = Topic("shop.sales", Sale, key="customer", partitions=3)
receipts = Topic("shop.receipts", Receipt, key="customer", partitions=2)
suspects = Topic("shop.suspects", Suspect, key="customer")
latest = PostgresTable("shop_latest", key="customer", write="upsert")

shop = Pipeline("shop")


@shop.flow(reads={"sales": sales}, writes=receipts, side_outputs=(suspects,), timeout="10 seconds")
def bill(sales: DataFrame) -> DataFrame:
    """A receipt for every sale; those that are too large to be true go to the suspects."""
    taxed = sales.withColumn("tax", (F.col("amount") * F.lit(Decimal("0.19"))).cast("decimal(12,2)"))
    return taxed.withColumn("_side_output", F.when(F.col("amount") > 900, "shop.suspects")).drop("id")


@shop.flow(reads={"receipts": receipts}, writes=PostgresTable("shop_receipts"))
def record(receipts: DataFrame) -> DataFrame:
    """Every receipt."""
    return receipts


@shop.flow(reads={"receipts": receipts}, writes=latest)
def keep(receipts: DataFrame) -> DataFrame:
    """The last receipt of every customer."""
    return receipts


def make_sales(count: int, seed: int, start: int = 0) -> list[Sale]:
    """Make sales that are the same for the same seed."""
    random = Random(seed)
    began = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Sale(
            f"c{random.randrange(50)}",
            Decimal(random.randrange(100, 100_000)) / 100,
            began + timedelta(seconds=number),
            id=f"sale-{start + number}",
        )
        for number in range(count)
    ]
