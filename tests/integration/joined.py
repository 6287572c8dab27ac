"""Orders, products, payments and shipments: the pipeline that the test of joins runs and kills."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Table, Topic
from penstock.pipeline import Pipeline
from penstock.process import joins


@dataclass(frozen=True)
class Order(Event):
    order: str
    product: str
    at: datetime


@dataclass(frozen=True)
class Product(Event):
    product: str
    price: int
    at: datetime


@dataclass(frozen=True)
class Payment(Event):
    order: str
    product: str
    at: datetime


@dataclass(frozen=True)
class Shipment(Event):
    order: str
    at: datetime


@dataclass(frozen=True)
class OrderView(Event):
    order: str
    product: str
    price: int | None
    change: str
    at: datetime


@dataclass(frozen=True)
class Priced(Event):
    payment: str
    price: int | None
    at: datetime


@dataclass(frozen=True)
class Shipped(Event):
    payment: str
    shipment: str | None
    at: datetime


orders = Table("joined.orders", Order, key="order", partitions=2)
products = Table("joined.products", Product, key="product")
payments = Topic("joined.payments", Payment, key="order")
shipments = Topic("joined.shipments", Shipment, key="order")
view = Table("joined.view", OrderView, key="order")
priced = Topic("joined.priced", Priced, key="payment")
shipped = Topic("joined.shipped", Shipped, key="payment")
joined = Pipeline("joined")


@joined.flow(reads={"orders": orders, "products": products}, writes=view, output="append")
def keep_view(orders: DataFrame, products: DataFrame) -> DataFrame:
    """Each order with the price that its product has now."""
    orders, products = (rows.drop("id") for rows in (orders, products.drop("at")))  # which are always new
    found = orders.transform(
        joins.tables(
            products, on="product", keys=("order", "product"), how="left", names=("one", "other"), buckets=4
        )
    )
    price, product = F.col("other.price").alias("price"), F.col("one.product").alias("product")
    return found.select("one.order", product, price, "change", "one.at", "_deleted", "_source")


@joined.flow(reads={"payments": payments, "products": products}, writes=priced, output="append")
def find_price(payments: DataFrame, products: DataFrame) -> DataFrame:
    """Each payment with the price that its product had then."""
    as_of = joins.as_of(
        products, on="product", time="at", since="at", history="1 hour", watermark="1 minute", name="then",
        buckets=4,
    )  # fmt: skip
    found = payments.transform(as_of)
    return found.select(F.col("id").alias("payment"), F.col("then.price").alias("price"), "at", "_source")


@joined.flow(reads={"payments": payments, "shipments": shipments}, writes=shipped, output="append")
def find_shipment(payments: DataFrame, shipments: DataFrame) -> DataFrame:
    """Each payment with the shipments of its order within a minute, or with none."""
    within = joins.within(
        shipments,
        on="order",
        time="at",
        after="1 minute",
        how="left",
        watermark="1 minute",
        names=("one", "other"),
    )
    found = payments.transform(within)
    return found.select(
        F.col("one.id").alias("payment"),
        F.col("other.id").alias("shipment"),
        F.col("one.at").alias("at"),
        "_source",
    )
