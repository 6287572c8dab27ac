"""The watermark of every operator is that of the ticks: none of them follows Spark's own, which is of all."""

from dataclasses import dataclass
from datetime import datetime

import pytest
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Topic
from penstock.process import dedup, joins, keyed, patterns, windows
from penstock.process.patterns import Pattern
from penstock.process.time.watermark import as_source, ticking
from penstock.process.windows import Late, agg
from penstock.testing.feed import _Source
from penstock.testing.feed_clock import FeedClock

BY = {"time": "at", "by": "card", "watermark": "7 minutes"}
ON = {"time": "at", "on": "card", "watermark": "7 minutes"}


@dataclass(frozen=True)
class Payment(Event):
    card: str
    amount: int
    at: datetime


payments = Topic("plans.payments", Payment)


def woken(rows, state):
    return state, rows


def counted(windowing):
    return windowing.agg(F.count("*").alias("n"))


OPERATORS = {
    "native tumbling": lambda: counted(windows.tumbling("1 hour", **BY)),
    "native hopping": lambda: counted(windows.hopping("1 hour", every="1 minute", **BY)),
    "native session": lambda: counted(windows.session("1 hour", **BY)),
    "tumbling": lambda: windows.tumbling("1 hour", **BY, late=Late.refire(within="1 hour")).agg(
        n=agg.count()
    ),
    "sliding": lambda: windows.sliding("1 hour", **BY).agg(n=agg.count()),
    "session": lambda: windows.session("1 hour", **BY).agg(n=agg.count()),
    "recent": lambda: keyed.recent(**BY, within="1 hour", at_most=3),
    "match": lambda: patterns.match(Pattern.one("amount = 1").then("amount = 2"), **BY, within="1 hour"),
    "absent": lambda: patterns.match(
        Pattern.one("amount = 1").not_followed_by("amount = 2", within="1 hour"), **BY, within="2 hours"
    ),
    "first": lambda: dedup.first(**BY, within="1 hour"),
    "stateful": lambda: keyed.stateful(woken, **BY, state="n long", returns="card string", ttl="1 hour"),
    "merged": lambda: lambda rows: joins.merged(**BY, one=rows, two=rows),
    "within": lambda: lambda rows: rows.transform(joins.within(rows, **ON, before="1 hour")),
    "as_of": lambda: lambda rows: rows.transform(joins.as_of(rows, **ON, since="at", history="1 day")),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_no_operator_follows_sparks_own_watermark(spark, operator):
    clock = FeedClock(_Source(spark, "time timestamp, clock boolean"))
    with ticking(clock):
        rows = as_source("payments", _Source(spark, payments).frame)
        made = rows.transform(OPERATORS[operator]())
    plan = made._jdf.queryExecution().analyzed().toString()
    marks = [line for line in plan.splitlines() if "EventTimeWatermark" in line]
    assert marks
    assert all(line.endswith("0 seconds") for line in marks), marks
