"""The flows that join: each takes the left side's events and puts those of the right side beside them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Table, Topic
from penstock.pipeline import Pipeline
from penstock.process import joins
from penstock.process.time.watermark import Watermark

WATERMARK = Watermark("4 seconds", idle="3 seconds")  # when nothing comes, it follows the clock
INTERVAL = "1 second"


@dataclass(frozen=True)
class Left(Event):
    """A click, a payment, or a row of orders; `n` numbers all events of its side."""

    key: str
    n: int
    at: datetime


@dataclass(frozen=True)
class Right(Event):
    """An impression, or a row of profiles or of products."""

    key: str
    n: int
    at: datetime


@dataclass(frozen=True)
class Order(Event):
    """A row of the left table, with the product that it is about."""

    order: str
    key: str
    n: int
    at: datetime


@dataclass(frozen=True)
class Pair(Event):
    """What a join has found: the numbers of both sides, or of one."""

    key: str
    left: int | None
    right: int | None
    at: datetime


@dataclass(frozen=True)
class Line(Event):
    """A row of the view of two tables."""

    order: str
    left: int
    right: int | None
    at: datetime


def left_of(prefix: str) -> Topic[Left]:
    return Topic(f"{prefix}left", Left, key="key")


def right_of(prefix: str) -> Topic[Right]:
    return Topic(f"{prefix}right", Right, key="key")


def rows_of(prefix: str) -> Table[Right]:
    return Table(f"{prefix}right", Right, key="key")


def orders_of(prefix: str) -> Table[Order]:
    return Table(f"{prefix}left", Order, key="order")


def pairs_of(prefix: str) -> Topic[Pair]:
    return Topic(f"{prefix}results", Pair, key="key")


def view_of(prefix: str) -> Table[Line]:
    return Table(f"{prefix}results", Line, key="order")


def _pipeline(
    function: Any, reads: dict[str, Topic[Any]], writes: Topic[Any], output: str = "append"
) -> Pipeline:
    made = Pipeline("joins")
    options: dict[str, Any] = {"output": output, "checkpoint_interval": INTERVAL, "lanes": 1}
    made.flow(name="joined", reads=reads, writes=writes, **options)(function)
    return made


def near(prefix: str, reach: str) -> Pipeline:
    """Two streams: clicks, and impressions up to `reach` before them."""

    def joined(left: DataFrame, right: DataFrame) -> DataFrame:
        sides = {"names": ("click", "impression"), "how": "full", "watermark": WATERMARK}
        found = left.transform(joins.within(right, on="key", time="at", before=reach, **sides))  # type: ignore[arg-type]
        at = F.coalesce("click.at", "impression.at").alias("at")
        return found.select("key", F.col("click.n").alias("left"), F.col("impression.n").alias("right"), at)

    return _pipeline(joined, {"left": left_of(prefix), "right": right_of(prefix)}, pairs_of(prefix))


def latest(prefix: str, reach: str) -> Pipeline:  # noqa: ARG001
    """A stream and a table: each payment with the row that the table has now."""

    def joined(left: DataFrame, right: DataFrame) -> DataFrame:
        return _with_row(left.transform(joins.latest(right, on="key", name="row")))

    return _pipeline(joined, {"left": left_of(prefix), "right": rows_of(prefix)}, pairs_of(prefix), "update")


def as_of(prefix: str, reach: str) -> Pipeline:
    """A stream and a table: each payment with the row that the table had at its time."""

    def joined(left: DataFrame, right: DataFrame) -> DataFrame:
        operator = joins.as_of(
            right, on="key", time="at", since="at", history=reach, watermark=WATERMARK, name="row"
        )
        return _with_row(left.transform(operator))

    return _pipeline(joined, {"left": left_of(prefix), "right": rows_of(prefix)}, pairs_of(prefix))


def _with_row(found: DataFrame) -> DataFrame:
    return found.select("id", "key", F.col("n").alias("left"), F.col("row.n").alias("right"), "at", "_source")


def tables(prefix: str, reach: str) -> Pipeline:  # noqa: ARG001
    """Two tables: each order with its product, whenever either one changes."""

    def joined(left: DataFrame, right: DataFrame) -> DataFrame:
        orders, products = left.drop("id"), right.drop("id", "at")
        view = joins.tables(products, on="key", keys=("order", "key"), how="left", names=("one", "other"))
        line = (
            "one.order",
            F.col("one.n").alias("left"),
            F.col("other.n").alias("right"),
            "one.at",
            "_deleted",
        )
        return orders.transform(view).select(*line)

    return _pipeline(joined, {"left": orders_of(prefix), "right": rows_of(prefix)}, view_of(prefix))
