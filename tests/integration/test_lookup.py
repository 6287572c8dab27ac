"""Rules as data: a table that a flow looks up, and that changes while the flow runs."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import functions as F

from penstock.errors import FlowError
from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Table, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.process import keyed, lookup, patterns
from penstock.process.patterns import Pattern

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Rule(Event):
    name: str
    threshold: int
    at: datetime


@dataclass(frozen=True)
class Login(Event):
    user: str
    failed: bool
    amount: int
    at: datetime


@dataclass(frozen=True)
class Alarm(Event):
    user: str
    reason: str
    at: datetime


rules = Table("lookup.rules", Rule, key="name")
logins = Topic("lookup.logins", Login, key="user")


def too_many(logins, rules):
    """More failures in a minute than the rule allows."""
    judged = logins.transform(lookup.broadcast(rules, by="name", name="rules"))
    seen = judged.transform(keyed.recent(by="user", time="at", within="1 minute", at_most=10))
    failures = keyed.count(where=lambda login: login.failed)
    emitted = seen.where(failures > F.col("event.rules")["failures"]["threshold"])
    return emitted.select("event.id", "event.user", "event.at", F.lit("failures").alias("reason"))


def drained(logins, rules):
    """A pattern whose amount is data."""
    judged = logins.transform(lookup.broadcast(rules, by="name", name="rules"))
    pattern = Pattern.one("failed").then("amount > rules['large'].threshold")
    found = judged.transform(patterns.match(pattern, by="user", time="at", within="1 minute", at_most=10))
    return found.select("event.id", "user", "event.at", F.lit("drained").alias("reason"))


@pytest.fixture
def place(settings, tmp_path):
    place = replace(settings, data=tmp_path)
    apply([rules, logins], Broker(place))
    return place


def send(place, topic, *events):
    with Producer(place) as producer:
        producer.send_all(topic, events)


def login(number, *, user="ann", failed=True, amount=0):
    return Login(user, failed, amount, START + timedelta(seconds=number), id=f"l{number}")


def rule(name, threshold):
    return Rule(name, threshold, START)


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_rule_is_changed_between_batches_and_withdrawn(place, spark):
    pipeline = Pipeline("lookup")
    alarms = Topic("lookup.alarms", Alarm, key="user")
    pipeline.flow(reads={"logins": logins}, looks_up={"rules": rules}, writes=alarms)(too_many)
    pattern = Topic("lookup.drained", Alarm, key="user")
    pipeline.flow(reads={"logins": logins}, looks_up={"rules": rules}, writes=pattern)(drained)

    def run(*events):
        send(place, logins, *events)
        with Runner(pipeline, place, once=True, spark=spark) as runner:
            assert runner.wait(120)

    send(place, rules, rule("failures", 5), rule("failures", 2), rule("large", 100))
    run(login(1), login(2), login(3), login(4, failed=False, amount=90))
    send(place, rules, rule("failures", 4), rule("large", 50))
    run(login(5), login(6, failed=False, amount=90))
    with Producer(place) as producer:
        producer.delete(rules, "failures")
    run(login(7), login(8), login(9))
    with Consumer(alarms, place) as consumer:
        assert [record.event.id for record in consumer.records(idle="1 second")] == ["l3", "l4"]
    with Consumer(pattern, place) as consumer:
        assert [record.event.id for record in consumer.records(idle="1 second")] == ["l6"]


@pytest.mark.timeout(240)
def test_a_rule_is_changed_while_a_flow_runs_in_real_time(place, spark):
    pipeline = Pipeline("lookup-live")
    alarms = Topic("lookup.live", Alarm, key="user")
    flow = {"mode": "realtime", "checkpoint_interval": "5 seconds"}
    pipeline.flow(reads={"logins": logins}, looks_up={"rules": rules}, writes=alarms, **flow)(too_many)
    send(place, rules, rule("failures", 0))
    with Runner(pipeline, place, spark=spark), Consumer(alarms, place) as consumer:
        heard = consumer.records(idle="60 seconds")
        send(place, logins, login(0, user="before"))
        assert any(record.event.user == "before" for record in heard)
        send(place, rules, rule("failures", 1))
        deadline, number = time.monotonic() + 60, 0
        while True:  # users with one failure, until that is no alarm any more
            number += 1
            send(place, logins, login(number, user=f"u{number}"), login(number, user=f"v{number}"))
            send(place, logins, login(number, user=f"v{number}"))
            users = {next(heard).event.user}
            while f"v{number}" not in users:
                users.add(next(heard).event.user)
            if f"u{number}" not in users:
                break
            assert time.monotonic() < deadline
            time.sleep(0.5)


def test_what_is_looked_up_is_a_table_with_a_key(spark):
    pipeline, alarms = Pipeline("lookup-bad"), Topic("lookup.bad", Alarm)
    with pytest.raises(FlowError, match="looks up 'rules', which is no table with a key"):
        pipeline.flow(reads={"logins": logins}, looks_up={"rules": logins}, writes=alarms)(too_many)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(FlowError, match="can't be a stream; give it to the flow as looks_up"):
        lookup.broadcast(stream, by="value", name="rules")
