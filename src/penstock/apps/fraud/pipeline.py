"""Fraud in real time by rules, a model and a pattern; and in a stream, the suspicious acts of each user."""

from typing import Any

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.fraud.events import alerts, models, profiles, suspects, transactions
from penstock.apps.fraud.model import NAME, score
from penstock.apps.fraud.plan import CHECKPOINT_INTERVAL
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.process import dedup, keyed, lookup, patterns
from penstock.process.patterns import Pattern

fraud = Pipeline("fraud")
READS: dict[str, Topic[Any]] = {"acts": transactions, "profile": profiles}


@fraud.flow(
    reads=READS,
    looks_up={"model": models},
    writes=alerts,
    mode="realtime",
    checkpoint_interval=CHECKPOINT_INTERVAL,
)
def suspicious(acts: DataFrame, profile: DataFrame, model: DataFrame) -> DataFrame:
    """What is too often, too much, too fast, or looks like fraud to the model."""
    kept, beside = ["id", "amount", "lat", "lon"], {"profile": profile}
    recent = keyed.recent(by="card", time="at", within="10 minutes", at_most=32, keeps=kept, tables=beside)
    spent = acts.where("kind in ('payment', 'transfer')").transform(recent)
    known = spent.transform(lookup.broadcast(model, by="name", name="models"))
    likely = score(F.col("event"), F.col("profile"), F.col("models")[NAME])
    last_two = F.slice(keyed.events(), 1, 2)
    rules = {
        "many": (keyed.count(within="1 minute") > 5, keyed.events(within="1 minute")),
        "much": (keyed.sum("amount") > 5000, keyed.events()),
        "fast": (keyed.speed_kmh("lat", "lon") > 500, last_two),
        "model": (likely > 0.9, F.slice(keyed.events(), 1, 1)),
    }
    reasons = [
        F.when(broken, F.struct(F.lit(name).alias("reason"), events["id"].alias("evidence")))
        for name, (broken, events) in rules.items()
    ]
    reasoned = known.select("event", "_source", F.explode(F.array_compact(F.array(*reasons))).alias("found"))
    return reasoned.select(
        F.concat_ws("/", "event.id", "found.reason").alias("id"),
        *("event.card", "event.user", "found.reason", "found.evidence", "event.at", "_source"),
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


@fraud.flow(reads={"alerts": alerts}, writes=suspects, output="append", checkpoint_interval="30 seconds")
def count_suspects(alerts: DataFrame) -> DataFrame:
    """Alerts that were re-emitted after a crash are counted once."""
    once = alerts.transform(dedup.first("id", time="at", within="1 hour", watermark="1 hour"))
    return once.select("user", "at").transform(
        keyed.stateful(counted, by="user", state="acts long", returns="user string, acts long, at timestamp")
    )


def counted(alerts: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add the new acts of users to those that they had."""
    new = alerts.group_by("user").agg(pl.len().alias("new"), pl.col("at").max())
    acts = pl.col("acts").fill_null(0) + pl.col("new")
    now = state.join(new, on="user").select("user", acts.alias("acts"), "at")
    return now, now
