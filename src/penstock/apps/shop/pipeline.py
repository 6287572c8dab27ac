"""The order view by two joins of captured tables, its copies, and alerts of products that run low."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.shop import events
from penstock.apps.shop.events import ViewedLine
from penstock.events import fields_of
from penstock.pipeline import Pipeline
from penstock.process import joins, keyed
from penstock.targets import LakeTable, PostgresTable, RedisHashes, SearchIndex

EVER = "3650 days"
UNHURRIED = "5 seconds"  # between two batches of what nobody waits for
COLUMNS = tuple(field.name for field in fields_of(ViewedLine) if field.name != "id")
TABLE = PostgresTable("order_view", key="line_id", write="upsert", columns=COLUMNS)
INDEX = SearchIndex("shop/index", key="line_id", text=("product", "customer"), columns=COLUMNS)
CACHE = RedisHashes("order-line", key="line_id")
LAKE = LakeTable("shop/lake", key="line_id", write="upsert", columns=COLUMNS)
shop = Pipeline("shop")


@shop.flow(reads={"lines": events.lines, "orders": events.orders}, writes=events.sold_lines)
def sold(lines: DataFrame, orders: DataFrame) -> DataFrame:
    """Each line with its order, whenever either one changes."""
    of_orders = joins.tables(orders.drop("at"), on=("order_id", "id"), keys="id", names=("line", "order"))
    return (
        lines.drop("at")
        .transform(of_orders)
        .select(
            F.col("line.id").alias("line_id"),
            *("line.order_id", "order.customer", "order.status", "order.placed"),
            *("line.product_id", "line.quantity", "_deleted", "_source"),
        )
    )


@shop.flow(reads={"lines": events.sold_lines, "products": events.products}, writes=events.order_view)
def view(lines: DataFrame, products: DataFrame) -> DataFrame:
    """Each of these with its product: a new price changes every line that refers to it."""
    priced = products.select("id", "name", "price", "_deleted", "_source")
    of_products = joins.tables(
        priced, on=("product_id", "id"), keys=("line_id", "id"), names=("line", "product")
    )
    amount = (F.col("line.quantity") * F.col("product.price")).cast("decimal(12,2)")
    return (
        lines.drop("id")
        .transform(of_products)
        .select(
            *("line.line_id", "line.order_id", "line.customer", "line.status", "line.placed"),
            *("line.product_id", F.col("product.name").alias("product"), "line.quantity", "product.price"),
            *(amount.alias("amount"), "_deleted", "_source"),
        )
    )


def _rows(lines: DataFrame) -> DataFrame:
    return lines.select(*COLUMNS, "_deleted", "_source")


@shop.flow(reads={"lines": events.order_view}, writes=TABLE)
def table(lines: DataFrame) -> DataFrame:
    """For the shop's own pages."""
    return _rows(lines)


@shop.flow(reads={"lines": events.order_view}, writes=INDEX, checkpoint_interval=UNHURRIED)
def index(lines: DataFrame) -> DataFrame:
    """To search by the words of products and customers."""
    return _rows(lines)


@shop.flow(reads={"lines": events.order_view}, writes=CACHE, checkpoint_interval=UNHURRIED)
def cache(lines: DataFrame) -> DataFrame:
    """For whoever asks for a line very often."""
    return _rows(lines)


@shop.flow(reads={"lines": events.order_view}, writes=LAKE, checkpoint_interval=UNHURRIED)
def lake(lines: DataFrame) -> DataFrame:
    """For analysts, with their own tools."""
    return _rows(lines)


@shop.flow(reads={"products": events.products}, writes=events.low_stock)
def running_low(products: DataFrame) -> DataFrame:
    """An alert when the stock of a product falls under its threshold, and none until it was restocked."""
    changes = products.where("_change is not null").select(  # a tombstone says nothing new
        *(F.col("id").alias("product_id"), F.col("name").alias("product"), "stock", "threshold", "at"),
        *(F.expr("stock < threshold").alias("low"), "_source"),
    )
    before = keyed.recent(
        by="product_id", time="at", keeps=["low"], at_most=2, bounded_keys=True, within=EVER
    )
    was_low = F.coalesce(keyed.previous("low"), F.lit(False))
    fallen = changes.transform(before).where(F.col("event.low") & ~was_low)
    columns = ("product_id", "product", "stock", "threshold", "at")
    return fallen.select(*(f"event.{name}" for name in columns), "_source")
