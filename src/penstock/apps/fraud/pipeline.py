"""Fraud in real time: rules, a model, a pattern and a block list; in a stream, each alert once, and users."""

from typing import Any

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.fraud.events import (
    alerts,
    alerts_once,
    blocked,
    models,
    profiles,
    refused,
    suspects,
    transactions,
)
from penstock.apps.fraud.model import NAME, score
from penstock.apps.fraud.plan import CHECKPOINT_INTERVAL
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.process import dedup, keyed, lookup, patterns
from penstock.process.patterns import Pattern

fraud = Pipeline("fraud")
READS: dict[str, Topic[Any]] = {"acts": transactions, "profile": profiles, "block": blocked}


@fraud.flow(
    reads=READS,
    looks_up={"model": models},
    writes=alerts,
    side_outputs=(refused,),
    mode="realtime",
    checkpoint_interval=CHECKPOINT_INTERVAL,
)
def suspicious(acts: DataFrame, profile: DataFrame, block: DataFrame, model: DataFrame) -> DataFrame:
    """What is too often, too much, too fast, or looks like fraud to the model; blocked cards are refused."""
    kept, beside = ["id", "amount", "lat", "lon"], {"profile": profile, "block": block}
    recent = keyed.recent(by="card", time="at", within="10 minutes", at_most=32, keeps=kept, tables=beside)
    spent = acts.where("kind in ('payment', 'transfer')").transform(recent)
    known = spent.transform(lookup.broadcast(model, by="name", name="models"))
    likely = score(F.col("event"), F.col("profile"), F.col("models")[NAME])
    rules = {
        "many": (keyed.count(within="1 minute") > 5, keyed.events(within="1 minute")["id"]),
        "much": (keyed.sum("amount") > 5000, keyed.events()["id"]),
        "fast": (keyed.speed_kmh("lat", "lon") > 500, F.slice(keyed.events(), 1, 2)["id"]),
        "model": (likely > 0.9, F.array("event.id")),
        "blocked": (F.expr("event.at > block.at"), F.array("block.alert")),
    }
    reasons = [
        F.when(broken, F.struct(F.lit(name).alias("reason"), evidence.alias("evidence")))
        for name, (broken, evidence) in rules.items()
    ]
    reasoned = known.select("event", "_source", F.explode(F.array_compact(F.array(*reasons))).alias("found"))
    return reasoned.select(
        F.concat_ws("/", "event.id", "found.reason").alias("id"),
        *("event.card", "event.user", "found.reason", "found.evidence", "event.at", "_source"),
        F.when(F.col("found.reason") == "blocked", refused.name).alias("_side_output"),
    )


@fraud.flow(
    reads={"acts": transactions}, writes=alerts, mode="realtime", checkpoint_interval=CHECKPOINT_INTERVAL
)
def taken_over(acts: DataFrame) -> DataFrame:
    """Three failed logins, then a large transfer."""
    drained = Pattern.times(3, "kind = 'login_failed'").then("kind = 'transfer' and amount > 1000")
    found = acts.transform(patterns.match(drained, by="card", time="at", within="10 minutes", at_most=8))
    return found.select(
        F.concat_ws("/", "event.id", F.lit("taken-over")).alias("id"),
        *("card", "event.user", F.lit("taken-over").alias("reason")),
        *(F.col("matched.id").alias("evidence"), "event.at", "_source"),
    )


@fraud.flow(
    reads={"alerts": alerts}, writes=blocked, mode="realtime", checkpoint_interval=CHECKPOINT_INTERVAL
)
def block(alerts: DataFrame) -> DataFrame:
    """The block list, which the next transaction of the card meets; a tombstone takes a card off it."""
    return alerts.select("card", F.col("id").alias("alert"), "at", "_source")


@fraud.flow(reads={"alerts": alerts}, writes=alerts_once, output="append", checkpoint_interval="5 seconds")
def each_once(alerts: DataFrame) -> DataFrame:
    """Without those that were re-emitted after a crash."""
    return alerts.transform(dedup.first("id", time="at", within="1 hour", watermark="1 hour"))


@fraud.flow(reads={"alerts": alerts_once}, writes=suspects, output="append", checkpoint_interval="30 seconds")
def count_suspects(alerts: DataFrame) -> DataFrame:
    """How many suspicious acts there were of each user."""
    return alerts.select("user", "at").transform(
        keyed.stateful(counted, by="user", state="acts long", returns="user string, acts long, at timestamp")
    )


def counted(alerts: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add the new acts of users to those that they had."""
    new = alerts.group_by("user").agg(pl.len().alias("new"), pl.col("at").max())
    acts = pl.col("acts").fill_null(0) + pl.col("new")
    now = state.join(new, on="user").select("user", acts.alias("acts"), "at")
    return now, now
