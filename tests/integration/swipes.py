"""One keyed rule, the count of a card's events within a minute, as a flow in each of the three modes."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.process import keyed


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
    recent = keyed.recent(by="card", time="at", within="1 minute", watermark="2 minutes")
    return swipes.transform(recent).select(
        F.concat_ws("/", "_source.partition", "_source.offset").alias("id"),
        "event.card",
        "event.at",
        keyed.count().cast("long").alias("swipes"),
    )


def results(mode: str) -> Topic[Recent]:
    return Topic(f"modes.{mode}", Recent, key="card")


modes, replay = Pipeline("modes"), Pipeline("modes-replay")


@modes.flow(reads={"swipes": swipes}, writes=results("stream"))
def stream(swipes: DataFrame) -> DataFrame:
    return count_swipes(swipes)


@modes.flow(
    reads={"swipes": swipes}, writes=results("realtime"), mode="realtime", checkpoint_interval="5 seconds"
)
def realtime(swipes: DataFrame) -> DataFrame:
    return count_swipes(swipes)


@replay.flow(reads={"swipes": swipes}, writes=results("replay"), mode="replay")
def whole(swipes: DataFrame) -> DataFrame:
    return count_swipes(swipes)
