"""The tour's flow: how many payments a card has made within ten seconds, told for each in real time."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.tour.payments import Payment
from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline

WITHIN_SECONDS = 10
_WITHIN = WITHIN_SECONDS * 1_000_000  # event times are compared in microseconds
_PLACE = "struct(us, partition, offset)"
_COUNT = f"size(filter(recent, x -> x.us > event.us - {_WITHIN} and x.us <= event.us))"


@dataclass(frozen=True)
class Pace(Event):
    """A payment's place in the log is its id, so that what is told twice is known as such."""

    card: str
    payments: int
    at: datetime


live = Topic("tour.live", Payment, key="card", partitions=2)
pace = Topic("tour.pace", Pace, key="card")
tour = Pipeline("tour")


@tour.flow(reads={"payments": live}, writes=pace, mode="realtime", checkpoint="5 seconds")
def count_payments(payments: DataFrame) -> DataFrame:
    """Keep a card's last payments in buckets of time, so that they expire; answer each payment by itself."""
    placed = payments.select(
        "card",
        "at",
        F.unix_micros("at").alias("us"),
        F.col("_source.partition").alias("partition"),
        F.col("_source.offset").alias("offset"),
    )
    bucket = F.window("at", f"{2 * WITHIN_SECONDS} seconds", f"{WITHIN_SECONDS} seconds").alias("bucket")
    kept = (
        placed.withWatermark("at", f"{2 * WITHIN_SECONDS} seconds")
        .groupBy("card", bucket)
        .agg(
            F.expr("max_by(struct(us, partition, offset), struct(us, partition, offset), 64)").alias(
                "recent"
            ),
            F.last(F.struct("us", "partition", "offset", "at")).alias("event"),
        )
    )
    # Of the two buckets that a payment falls into, the one that reaches back far enough answers.
    reaches_back = f"unix_micros(bucket.start) = (event.us div {_WITHIN} - 1) * {_WITHIN}"
    return kept.where(reaches_back).select(
        F.concat_ws("/", "event.partition", "event.offset").alias("id"),
        "card",
        F.expr(_COUNT).cast("long").alias("payments"),
        "event.at",
    )
