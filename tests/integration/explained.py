"""Flows whose results are explained: one event each, windows in a table, and a rule over recent events."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.events import Event, Precision
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.process import keyed, windows
from penstock.targets import PostgresTable

Money = Annotated[Decimal, Precision(12, 2)]


@dataclass(frozen=True)
class Sale(Event):
    customer: str
    amount: Money
    at: datetime


@dataclass(frozen=True)
class Spree(Event):
    customer: str
    sales: int
    spent: Money
    at: datetime


sales = Topic("why.sales", Sale, key="customer", partitions=2)
large = Topic("why.large", Sale, key="customer")
sprees = Topic("why.sprees", Spree, key="customer")
minutes = PostgresTable("why_minutes", key=("customer", "start"), write="upsert")
explained = Pipeline("explained")


@explained.flow(reads={"sales": sales}, writes=large, version="v2")
def is_large(sales: DataFrame) -> DataFrame:
    """Sales of more than 90."""
    return sales.where("amount > 90").drop("id")


@explained.flow(reads={"sales": sales}, writes=sprees)
def sprees_of(sales: DataFrame) -> DataFrame:
    """The third sale within ten seconds."""
    recent = sales.transform(keyed.recent(by="customer", time="at", within="10 seconds", at_most=8))
    counted = recent.select(
        "event.customer",
        "event.at",
        keyed.count().cast("long").alias("sales"),
        keyed.sum("amount").cast("decimal(12,2)").alias("spent"),
        "_source",
    )
    return counted.where(F.col("sales") >= 3)


@explained.flow(reads={"sales": sales}, writes=minutes, output="append")
def by_minute(sales: DataFrame) -> DataFrame:
    """What each customer spent in each minute."""
    each = windows.tumbling("1 minute", time="at", by="customer", watermark="1 second")
    return sales.transform(each.agg(F.count("*").alias("sales"), F.sum("amount").alias("spent")))
