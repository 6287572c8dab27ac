"""One keyed rule, the count of a card's events within a minute, as a flow in each of the three modes."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline

MINUTE = 60_000_000
WITHIN = f"size(filter(h, x -> x.us > e.us - {MINUTE} and x.us <= e.us))"
PLACE = "us, p, o, card, at"


@dataclass(frozen=True)
class Swipe(Event):
    card: str
    at: datetime


@dataclass(frozen=True)
class Recent(Event):
    card: str
    swipes: int
    at: datetime


swipes = Topic("modes.swipes", Swipe, key="card", partitions=4)


def count_swipes(swipes: DataFrame) -> DataFrame:
    """How many events of the card happened within the minute before each, in the order of the log."""
    placed = swipes.select(
        "card",
        "at",
        F.unix_micros("at").alias("us"),
        F.col("_source.partition").alias("p"),
        F.col("_source.offset").alias("o"),
    )
    kept = _kept_as_state(placed) if swipes.isStreaming else _kept_by_windows(placed)
    return kept.select(
        F.concat_ws("/", "e.p", "e.o").alias("id"),
        "e.card",
        "e.at",
        F.expr(WITHIN).cast("long").alias("swipes"),
    )


def _kept_as_state(placed: DataFrame) -> DataFrame:
    """The last events of a card in buckets of time, so that state expires; one row out for each row in."""
    kept = (
        placed.withWatermark("at", "2 minutes")
        .groupBy("card", F.window("at", "2 minutes", "1 minute").alias("w"))
        .agg(
            F.expr("max_by(struct(us, p, o), struct(us, p, o), 256)").alias("h"),
            F.last(F.struct(*PLACE.split(", "))).alias("e"),
        )
    )
    return kept.where(f"unix_micros(w.start) = (e.us div {MINUTE} - 1) * {MINUTE}").select("h", "e")


def _kept_by_windows(placed: DataFrame) -> DataFrame:
    """The same as a window function over the log's order of each card."""
    so_far = Window.partitionBy("card").orderBy("p", "o").rowsBetween(Window.unboundedPreceding, 0)
    return placed.select(
        F.struct(*PLACE.split(", ")).alias("e"), F.collect_list(F.struct("us")).over(so_far).alias("h")
    )


def results(mode: str) -> Topic[Recent]:
    return Topic(f"modes.{mode}", Recent, key="card")


modes, replay = Pipeline("modes"), Pipeline("modes-replay")


@modes.flow(reads={"swipes": swipes}, writes=results("stream"))
def stream(swipes: DataFrame) -> DataFrame:
    return count_swipes(swipes)


@modes.flow(reads={"swipes": swipes}, writes=results("realtime"), mode="realtime", checkpoint="5 seconds")
def realtime(swipes: DataFrame) -> DataFrame:
    return count_swipes(swipes)


@replay.flow(reads={"swipes": swipes}, writes=results("replay"), mode="replay")
def whole(swipes: DataFrame) -> DataFrame:
    return count_swipes(swipes)
