"""Functions over keyed state on Spark: as a stream, in replay, by a plain count; timers, growing state."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

import polars as pl
import pytest

from penstock.errors import FlowError
from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner, stored_state
from penstock.process import keyed
from penstock.testing import Feed

START = datetime(2026, 3, 29, 0, 59, tzinfo=UTC)
SCHEMA = "user string, n long, at timestamp, _source struct<topic:string,partition:int,offset:long>"


def at(seconds):
    return START + timedelta(seconds=seconds)


def row(number, user, seconds):
    return user, number, at(seconds), {"topic": "visits", "partition": 0, "offset": number}


def counted(rows, state):
    """How many visits of a user there have been at each of them."""
    known = rows.join(state, on="user", how="left", nulls_equal=True, maintain_order="left")
    so_far = pl.col("seen").fill_null(0) + pl.int_range(1, pl.len() + 1).over("user")
    emitted = known.select("n", "at", so_far.alias("seen"))
    sums = rows.group_by("user").len()
    kept = state.join(sums, on="user", nulls_equal=True).select(
        "user", pl.col("seen").fill_null(0) + pl.col("len")
    )
    return kept, emitted


def make_log(seed, events=1200):
    random, users = Random(seed), [None, *(f"u{number}" for number in range(300))]
    return [
        (random.choice([*users, "hot", "hot"]), number / 4 - random.choice((0, 0, 7)))
        for number in range(events)
    ]


def expected(log, ttl=None):
    emitted, known = {}, {}
    for number, (user, time) in enumerate(log):
        seen, latest = known.get(user, (0, time))
        seen = 1 if ttl is not None and time > latest + ttl else seen + 1
        emitted[number], known[user] = seen, (seen, max(time, latest))
    return emitted


def operators(**more):
    return keyed.stateful(
        counted, by="user", state="seen long", returns="n long, seen long", buckets=5, **more
    )


@pytest.mark.parametrize("ttl", [None, pytest.param(20, marks=pytest.mark.long)])
def test_stream_and_replay_are_as_a_plain_count(spark, ttl):
    log = make_log(7)
    rows = [row(number, *event) for number, event in enumerate(log)]
    more = {"time": "at", "watermark": "10 seconds", "ttl": f"{ttl} seconds"} if ttl else {}
    with Feed(spark, lambda visits: visits.transform(operators(**more)), visits=SCHEMA) as feed:
        for first in range(0, len(rows), 200):
            feed.send(visits=rows[first : first + 200])
        assert {each.n: each.seen for each in feed.results} == expected(log, ttl)
    replayed = spark.createDataFrame(rows, SCHEMA).repartition(3).transform(operators(**more)).collect()
    assert {each.n: each.seen for each in replayed} == expected(log, ttl)


def absences(rows, state):
    """A user who has not been seen for ten seconds is emitted, and forgotten."""
    latest = rows.group_by("user").agg(pl.col("at").max())
    known = state.join(latest, on="user", how="left")
    over = pl.col("due") & pl.col("at").is_null()
    leaves = pl.max_horizontal("leaves", pl.col("at") + timedelta(seconds=10))
    return known.filter(~over).select("user", leaves=leaves), known.filter(over).select("user", "leaves")


def test_a_timer_wakes_its_key_when_the_watermark_has_passed_it(spark):
    operator = keyed.stateful(
        absences, by="user", state="leaves timestamp", returns="user string, leaves timestamp",
        time="at", watermark="5 seconds", timer="leaves", buckets=2,
    )  # fmt: skip
    with Feed(spark, lambda visits: visits.transform(operator), visits=SCHEMA) as feed:
        assert feed.send(visits=[row(0, "a", 0), row(1, "b", 3)]) == []
        assert feed.send(visits=[row(2, "a", 8)]) == []
        assert feed.advance(at(12)) == []
        assert [(each.user, each.leaves) for each in feed.advance(at(14))] == [
            ("b", at(13).replace(tzinfo=None))
        ]
        assert feed.advance(at(17)) == []
        assert [each.user for each in feed.advance(at(30))] == ["a"]
    rows = spark.createDataFrame([row(0, "a", 0), row(1, "b", 3)], SCHEMA)
    assert Counter(each.user for each in rows.transform(operator).collect()) == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"ttl": "1 hour"}, "needs to know the time"),
        ({"buckets": 0}, "at least one bucket"),
        ({"frames": "numpy"}, "no frames of 'numpy'"),
    ],
)
def test_what_can_not_be_is_refused(more, message):
    with pytest.raises(FlowError, match=message):
        keyed.stateful(counted, **{"by": "user", "state": "seen long", "returns": "n long", **more})


def test_state_that_does_not_fit_its_key_or_timer_is_refused(spark):
    rows = spark.createDataFrame([], SCHEMA)
    for state, more, message in (
        ("user string", {}, "declares the column 'user'"),
        ("due boolean", {}, "declares the column 'due'"),
        ("seen long", {"timer": "gone"}, "'gone' is no column"),
        ("seen long", {"timer": "seen"}, "is bigint, expected a timestamp"),
    ):
        operator = keyed.stateful(
            counted, by="user", state=state, returns="n long", time="at", watermark="1 second", **more
        )
        with pytest.raises(FlowError, match=message):
            rows.transform(operator)


@dataclass(frozen=True)
class Visit(Event):
    user: str
    n: int
    at: datetime


@dataclass(frozen=True)
class Seen(Event):
    n: int
    seen: int
    at: datetime


visits, seen = Topic("stateful.visits", Visit, key="user"), Topic("stateful.seen", Seen)


def pipeline(state, function=counted):
    made = Pipeline("stateful")

    @made.flow(reads={"visits": visits}, writes=seen, output="append")
    def counts(visits):
        returns = "id string, n long, seen long, at timestamp"
        return visits.transform(keyed.stateful(function, by="user", state=state, returns=returns, buckets=2))

    return made


def grown(rows, state):
    """As before, and the last visit is kept too."""
    kept, emitted = counted_with_ids(rows, state)
    last = rows.group_by("user").agg(pl.col("n").last().alias("last"))
    return kept.join(last, on="user"), emitted


def counted_with_ids(rows, state):
    kept, emitted = counted(rows, state)
    return kept, emitted.with_columns(pl.format("{}/{}", "n", "seen").alias("id"))


@pytest.mark.long
def test_a_flow_goes_on_with_state_that_has_grown_and_can_be_looked_into(settings, spark, tmp_path):
    place = replace(settings, data=tmp_path)
    apply([visits], Broker(place))

    def run(number, made):
        with Producer(place) as producer:
            producer.send_all(visits, [Visit(user, number, at(number)) for user in ("a", "b", "a")])
        with Runner(made, place, once=True, spark=spark) as runner:
            assert runner.wait(120)

    run(0, pipeline("seen int", counted_with_ids))
    (before,) = stored_state(spark, place, "stateful.counts", ["a"])
    run(1, pipeline("seen long, last long", grown))
    (after,) = stored_state(spark, place, "stateful.counts", ["a"])
    assert (before.key, before.value) == ({"user": "a"}, {"seen": 2})
    assert (after.key, after.value) == ({"user": "a"}, {"seen": 4, "last": 1})
    assert stored_state(spark, place, "stateful.counts", ["a"], batch=0)[0].value == {"seen": 2}
    with Consumer(seen, place) as consumer:
        emitted = [record.event for record in consumer.records(idle="3 seconds")]
    assert sorted((event.n, event.seen) for event in emitted) == [
        (0, 1),
        (0, 1),
        (0, 2),
        (1, 2),
        (1, 3),
        (1, 4),
    ]
    with pytest.raises(FlowError, match="can't go on with its checkpoint"):
        run(2, pipeline("seen string", grown))
