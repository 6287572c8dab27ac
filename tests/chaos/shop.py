"""The shop that campaigns hurt: its receipts are Avro, and its code has two versions."""

import os
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from penstock.pipeline import Pipeline
from tests.integration import shop as plain

CODE = "CHAOS_CODE"


@dataclass(frozen=True)
class LaterSale(plain.Sale):
    """A sale as later code has it: the same events, but another class to decode them."""

    channel: str = "web"


sales = replace(plain.sales, event=LaterSale if os.environ.get(CODE) == "2" else plain.Sale)
receipts = replace(plain.receipts, format="avro")
shop = Pipeline("shop")


@shop.flow(reads={"sales": sales}, writes=receipts, side_outputs=(plain.suspects,), timeout="10 seconds")
def bill(sales: DataFrame) -> DataFrame:
    return plain.bill(sales.drop("channel"))


shop.flow(reads={"receipts": receipts}, writes=plain.PostgresTable("shop_receipts"))(plain.record)
shop.flow(reads={"receipts": receipts}, writes=plain.latest)(plain.keep)
