"""What flows keep of a key: native and vectorised, as it is and as it was."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import functions as F
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.errors import FlowError
from penstock.events import Event
from penstock.log import Broker, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner, stored_state
from penstock.process import keyed, windows
from penstock.process.windows import agg

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Payment(Event):
    card: str
    amount: int
    at: datetime


@dataclass(frozen=True)
class Count(Event):
    card: str
    n: int
    at: datetime


payments = Topic("stored.payments", Payment, key="card")
watch = Pipeline("stored")


@watch.flow(reads={"payments": payments}, writes=Topic("stored.recent", Count, key="card"))
def recent(payments):
    seen = payments.transform(keyed.recent(by="card", time="at", within="1 minute", at_most=5))
    return seen.select("event.id", "event.card", "event.at", keyed.count().cast("long").alias("n"))


@watch.flow(reads={"payments": payments}, writes=Topic("stored.minutes", Count, key="card"), output="append")
def minutes(payments):
    windowing = windows.tumbling("1 minute", time="at", by="card", watermark="1 hour", buckets=2)
    counted = payments.transform(windowing.agg(n=agg.count()))
    return counted.select(
        F.concat_ws("/", "card", "start").alias("id"), "card", "n", F.col("start").alias("at")
    )


@pytest.fixture(scope="module")
def place(settings, spark, tmp_path_factory):
    """Where two runs of the flows have left their state, with a payment of each card in each."""
    place = replace(settings, data=tmp_path_factory.mktemp("stored"))
    apply([payments], Broker(place))
    for number in range(2):
        at = START + timedelta(seconds=10 * number)
        with Producer(place) as producer:
            producer.send_all(payments, [Payment(card, 10 + number, at) for card in ("a", "b")])
        with Runner(watch, place, once=True, spark=spark) as runner:
            assert runner.wait(120)
    return place


def amounts(found):
    return sorted(sorted(each["amount"] for each in stored.value["values"]) for stored in found)


def test_native_state_of_a_key_now_and_after_an_earlier_batch(spark, place):
    found = stored_state(spark, place, "stored.recent", ["a"])
    assert {each.key["_key0"] for each in found} == {"a"}
    assert amounts(found) == [[10, 11], [10, 11]]  # a stretch of time and the next
    assert amounts(stored_state(spark, place, "stored.recent", ["a"], batch=0)) == [[10], [10]]


def test_vectorised_state_of_a_key(spark, place):
    (found,) = stored_state(spark, place, "stored.minutes", ["b"])
    assert found.key == {"card": "b"}
    assert found.value["rows"] == 2
    (before,) = stored_state(spark, place, "stored.minutes", ["b"], batch=0)
    assert before.value["rows"] == 1


def test_what_is_not_there(spark, place):
    assert stored_state(spark, place, "stored.recent", ["nobody"]) == []
    assert stored_state(spark, place, "stored.minutes", ["nobody"]) == []
    with pytest.raises(FlowError, match="after batch 900 is not there; batches 0 to"):
        stored_state(spark, place, "stored.recent", ["a"], batch=900)
    with pytest.raises(FlowError, match=r"'stored\.other' has no checkpoint"):
        stored_state(spark, place, "stored.other", ["a"])


def test_the_command_line_shows_it(spark, place, monkeypatch):
    monkeypatch.setattr("penstock.process.session", lambda *_, **__: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    for name, value in place.environment().items():
        monkeypatch.setenv(name, value)
    answer = CliRunner().invoke(app, ["state", "show", "stored", "recent", "a", "--json"])
    assert answer.exit_code == 0, answer.output
    assert len(json.loads(answer.stdout)) == 2
    answer = CliRunner().invoke(app, ["state", "show", "stored", "recent", "nobody"])
    assert "recent keeps nothing under nobody" in answer.stdout
