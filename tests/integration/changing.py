"""Flows over classes that change: a field comes with a default in version 2, one is renamed in version 3."""

from dataclasses import dataclass
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Table, Topic
from penstock.pipeline import Pipeline
from penstock.process import dedup, joins, keyed, patterns, windows
from penstock.process.patterns import Pattern
from penstock.process.windows import agg
from penstock.schemas import rename, upcast


@dataclass(frozen=True)
class Payment1(Event):
    card: str
    amount: int
    at: datetime


@dataclass(frozen=True)
class Payment2(Event):
    card: str
    amount: int
    at: datetime
    channel: str = "web"


@dataclass(frozen=True)
class Payment3(Event):
    customer: str
    amount: int
    at: datetime
    channel: str = "web"


@dataclass(frozen=True)
class Profile1(Event):
    card: str
    limit: int
    at: datetime


@dataclass(frozen=True)
class Profile2(Event):
    card: str
    limit: int
    at: datetime
    tier: str = "basic"


@dataclass(frozen=True)
class Profile3(Event):
    customer: str
    limit: int
    at: datetime
    tier: str = "basic"


@dataclass(frozen=True)
class Profile4(Event):
    """A number has become a text: state that has numbers can't follow."""

    customer: str
    limit: str
    at: datetime
    tier: str = "basic"


@dataclass(frozen=True)
class Told(Event):
    text: str
    at: datetime


PAYMENTS = {1: Payment1, 2: Payment2, 3: Payment3, 4: Payment3}
PROFILES = {1: Profile1, 2: Profile2, 3: Profile3, 4: Profile4}

SPENT = """
    SELECT to_json(struct('spent_in_sql' AS operator, {who}, spent)) AS text, timestamp_micros(0) AS at
    FROM (SELECT {who}, sum(amount) AS spent FROM payments GROUP BY {who}, window(at, '1 day'))
"""
PAIRS = """
    SELECT to_json(struct('pairs_in_sql' AS operator, {who}, amount, next)) AS text, timestamp_micros(0) AS at
    FROM (
        SELECT a.{who}, a.amount, b.amount AS next
        FROM payments a
        JOIN payments b ON a.{who} = b.{who} AND b.at BETWEEN a.at AND a.at + INTERVAL 10 MINUTES
        WHERE a.id <> b.id
    )
"""


def emitted(operator, rows, *columns):
    """A result: the name of the operator and the columns, as JSON."""
    text = F.to_json(F.struct(F.lit(operator).alias("operator"), *columns))
    return rows.select(text.alias("text"), F.timestamp_micros(F.lit(0)).alias("at"))


class Version:
    """The topics and the pipeline of a version; names are the same in all of them."""

    def __init__(self, version, name):
        self.who = "card" if version < 3 else "customer"
        steps = (upcast(2, rename("card", to="customer")),) if version >= 3 else ()
        self.payment, self.profile = PAYMENTS[version], PROFILES[version]
        self.payments = Topic(f"{name}.payments", self.payment, key=self.who, upcasts=steps)
        self.profiles = Table(f"{name}.profiles", self.profile, key=self.who, upcasts=steps)
        self.limits = Table(f"{name}.limits", self.profile, key=self.who, upcasts=steps)
        self.results = Topic(f"{name}.results", Told)
        self.pipeline = Pipeline(name)
        reads = {"payments": self.payments, "profiles": self.profiles}
        self.pipeline.flow(reads=reads, writes=self.results)(self.each)
        reads |= {"limits": self.limits}
        self.pipeline.flow(reads=reads, writes=self.results, output="append")(self.final)
        for name, query in (("spent_in_sql", SPENT), ("pairs_in_sql", PAIRS)):
            self.pipeline.sql(
                name,
                query.format(who=self.who),
                reads={"payments": self.payments},
                writes=self.results,
                watermark={"payments": "1 hour"},
            )

    def each(self, payments, profiles):
        """What is emitted of each event, by Spark's own aggregates."""
        return self.recent(payments).union(self.latest(payments, profiles))

    def final(self, payments, profiles, limits):
        """All other operators, in one query."""
        of_payments = [self.sliding, self.first, self.match, self.native]
        found = [operator(payments) for operator in of_payments]
        found += [
            self.as_of(payments, profiles),
            self.within(payments, profiles),
            self.view(profiles, limits),
        ]
        return reduce(DataFrame.union, found)

    @property
    def event(self):
        """The fields of a payment, as this version has them."""
        return [each for each in (self.who, "amount", "channel") if each in self.payment.__annotations__]

    def as_of(self, payments, profiles):
        join = joins.as_of(
            profiles, on=self.who, time="at", since="at", history="1 day", watermark="1 hour", buckets=1
        )
        return emitted("as_of", payments.transform(join), *self.event, "row.limit", *self._tier("row"))

    def sliding(self, payments):
        windowing = windows.sliding("1 day", time="at", by=self.who, watermark="1 hour", buckets=1)
        return emitted(
            "sliding", payments.transform(windowing.agg(spent=agg.sum("amount"))), *self.event, "spent"
        )

    def first(self, payments):
        once = dedup.first(self.who, time="at", within="1 day", watermark="1 hour", buckets=1)
        return emitted("first", payments.transform(once), *self.event)

    def match(self, payments):
        pattern = Pattern.one("amount = 1").then("amount = 2").then("amount = 3")
        found = payments.transform(
            patterns.match(pattern, by=self.who, time="at", within="1 day", overlap=False, bounded_keys=True)
        )
        events = F.transform("matched", lambda each: F.struct(*(each[name] for name in self.event)))
        return emitted("match", found, events.alias("matched"))

    def view(self, profiles, limits):
        sides = [table.drop("id", "at") for table in (profiles, limits)]
        view = joins.tables(sides[1], on=self.who, keys=self.who, names=("one", "other"), buckets=1)
        return emitted(
            "view", sides[0].transform(view), "change", f"one.{self.who}", "other.limit", *self._tier("one")
        )

    def recent(self, payments):
        seen = payments.transform(keyed.recent(by=self.who, time="at", within="1 day", at_most=5))
        spent = keyed.sum("amount", type="long").alias("spent")
        return emitted("recent", seen, *(f"event.{name}" for name in self.event), spent)

    def latest(self, payments, profiles):
        found = payments.transform(joins.latest(profiles, on=self.who, name="row"))
        return emitted("latest", found, *self.event, "row.limit", *self._tier("row"))

    def within(self, payments, profiles):
        near = joins.within(profiles, on=self.who, time="at", watermark="1 hour", before="1 day")
        return emitted(
            "within", payments.transform(near), F.col(self.who).alias("who"), "left.amount", "right.limit"
        )

    def native(self, payments):
        windowing = windows.tumbling("1 day", time="at", by=self.who, watermark="1 hour")
        return emitted(
            "native", payments.transform(windowing.agg(F.sum("amount").alias("spent"))), self.who, "spent"
        )

    def _tier(self, struct):
        return [f"{struct}.tier"] if "tier" in self.profile.__annotations__ else []
