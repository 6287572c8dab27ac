"""Copies of a captured table: a table, a cache, an index, a lake; the last two are in the folder COPIES."""

import os
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pyspark.sql import DataFrame

from penstock.events import Event, Precision
from penstock.log import Table
from penstock.pipeline import Pipeline
from penstock.targets import LakeTable, PostgresTable, RedisHashes, SearchIndex

FOLDER = Path(os.environ["COPIES"])
COLUMNS = ("id", "name", "price", "note")


@dataclass(frozen=True)
class Order(Event):
    id: int
    name: str | None
    price: Annotated[Decimal, Precision(12, 2)] | None
    note: str | None = None


ORDERS = Table("shop.public.orders", Order, key="id", format="debezium-json")
INDEX = SearchIndex(FOLDER / "index", key="id", text="name", columns=COLUMNS)
LAKE = LakeTable(str(FOLDER / "lake"), key="id", write="upsert", columns=COLUMNS, compact=20)
copies = Pipeline("copies")


def _rows(orders: DataFrame) -> DataFrame:
    return orders.select(*COLUMNS, "_deleted", "_source")


@copies.flow(
    reads={"orders": ORDERS},
    writes=PostgresTable("orders_copy", key="id", write="upsert", columns=COLUMNS),
    checkpoint_interval="2 seconds",
)
def table(orders: DataFrame) -> DataFrame:
    return _rows(orders)


@copies.flow(reads={"orders": ORDERS}, writes=RedisHashes("order", key="id"), checkpoint_interval="2 seconds")
def cache(orders: DataFrame) -> DataFrame:
    return _rows(orders)


@copies.flow(reads={"orders": ORDERS}, writes=INDEX, checkpoint_interval="2 seconds")
def index(orders: DataFrame) -> DataFrame:
    return _rows(orders)


@copies.flow(reads={"orders": ORDERS}, writes=LAKE, checkpoint_interval="2 seconds")
def lake(orders: DataFrame) -> DataFrame:
    return _rows(orders)
