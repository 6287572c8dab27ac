"""The flows that are killed: one stream under three guarantees, or through three stateful steps."""

from dataclasses import dataclass
from datetime import datetime

import polars as pl
from pyspark.sql import DataFrame

from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.process import dedup, keyed
from penstock.targets.target import Guarantee

GUARANTEES: tuple[Guarantee, ...] = ("at-most-once", "at-least-once", "exactly-once")
STEPS = ("deduplicate", "count by key", "most of a group")  # in the order in which events pass them
PARTITIONS = 2
_BUCKETS = 4  # for few keys
_OPTIONS = {"maxOffsetsPerTrigger": "4000"}  # after a long start, too, batches are short enough to be seen


@dataclass(frozen=True)
class Reading(Event):
    """An event with its number."""

    n: int
    key: str
    at: datetime


@dataclass(frozen=True)
class Most(Event):
    """The highest count of any key of a group, when an event came."""

    group: str
    n: int
    most: int
    at: datetime


def events_of(prefix: str) -> Topic[Reading]:
    """Return the topic that all flows read."""
    return Topic(f"{prefix}events", Reading, key="key", partitions=PARTITIONS)


def results_of(prefix: str) -> dict[str, Topic[Reading]]:
    """Return the topic of each guarantee's results."""
    return {name: Topic(f"{prefix}{name}", Reading, key="key", partitions=PARTITIONS) for name in GUARANTEES}


def most_of(prefix: str) -> Topic[Most]:
    """Return the topic that the three steps write."""
    return Topic(f"{prefix}steps", Most, key="group")


def flow_of(guarantee: str) -> str:
    """Return the name of the flow with a guarantee."""
    return guarantee.replace("-", "_")


def guarantees(prefix: str, interval: str) -> Pipeline:
    """Three flows that do the same, each with another guarantee."""
    made, events = Pipeline("guarantees"), events_of(prefix)
    for guarantee, results in results_of(prefix).items():
        flow = made.flow(
            name=flow_of(guarantee),
            reads={"events": events},
            writes=results,
            guarantee=guarantee,  # type: ignore[arg-type]
            checkpoint_interval=interval,
            lanes=1,
            options=_OPTIONS,
        )
        flow(passed_on)
    return made


def passed_on(events: DataFrame) -> DataFrame:
    """Each event as it came."""
    return events.select("id", "n", "key", "at", "_source")


def steps(prefix: str, interval: str) -> Pipeline:
    """One flow with three stateful steps."""
    made = Pipeline("steps")
    flow = made.flow(
        name="chained",
        reads={"events": events_of(prefix)},
        writes=most_of(prefix),
        output="append",
        checkpoint_interval=interval,
        lanes=1,
        options=_OPTIONS,
    )
    flow(chained)
    return made


def chained(events: DataFrame) -> DataFrame:
    """Without duplicates; the count of each key; and the highest one of each group of keys."""
    once = events.transform(
        dedup.first("id", time="at", within="1 minute", watermark="10 seconds", buckets=_BUCKETS)
    )
    counted = once.transform(
        keyed.stateful(
            count_key,
            by="key",
            state="count long",
            returns="key string, n long, at timestamp, count long",
            buckets=_BUCKETS,
        )
    )
    grouped = counted.selectExpr("substring(key, 1, 1) as group", "n", "at", "count as so_far")
    return grouped.transform(
        keyed.stateful(
            find_most,
            by="group",
            state="most long",
            returns="group string, n long, at timestamp, most long",
            buckets=_BUCKETS,
        )
    )


def count_key(events: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Count the events of each key."""
    known = events.join(state, on="key", how="left", maintain_order="left")
    before, number = pl.col("count").fill_null(0), pl.int_range(1, pl.len() + 1).over("key")
    after = known.with_columns(now=before + number)
    results = after.select("key", "n", "at", pl.col("now").alias("count"))
    return after.group_by("key").agg(count=pl.col("now").last()), results


def find_most(counts: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the highest count of each group."""
    known = counts.join(state, on="group", how="left", maintain_order="left")
    highest = pl.max_horizontal(pl.col("most").fill_null(0), pl.col("so_far").cum_max().over("group"))
    after = known.with_columns(now=highest)
    results = after.select("group", "n", "at", pl.col("now").alias("most"))
    return after.group_by("group").agg(most=pl.col("now").last()), results
