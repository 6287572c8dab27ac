"""Small pipelines for a secured broker: a flow of transactions, one in real time and one for replays."""

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline


@dataclass(frozen=True)
class Payment(Event):
    card: str
    cents: int
    at: datetime


payments = Topic("guarded.payments", Payment, key="card", partitions=2, format="avro")
booked = Topic("guarded.booked", Payment, key="card")
echoed = Topic("guarded.echoed", Payment, key="card")
history = Topic("guarded.history", Payment, key="card")

guarded = Pipeline("guarded")
echoing = Pipeline("echoing")
recalled = Pipeline("recalled")


@guarded.flow(reads={"payments": payments}, writes=booked, timeout="10 seconds")
def book(payments: DataFrame) -> DataFrame:
    """Every payment, exactly once."""
    return payments.drop("id")


@echoing.flow(reads={"payments": payments}, writes=echoed, mode="realtime")
def echo(payments: DataFrame) -> DataFrame:
    """Every payment, at once."""
    return payments.drop("id")


@recalled.flow(reads={"payments": payments}, writes=history, mode="replay")
def recall(payments: DataFrame) -> DataFrame:
    """Every payment there was."""
    return payments.drop("id")


def some_payments(count: int) -> list[Payment]:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    return [Payment(f"card-{number % 5}", number, began) for number in range(count)]
