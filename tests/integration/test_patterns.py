"""Patterns on Spark, as a stream and in replay, against a reference that tries everything."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from pyspark.sql import functions as F
from tests.reference import patterns as reference

from penstock.errors import FlowError
from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.pipeline.limits import refuse_limits
from penstock.process import patterns
from penstock.process.patterns import Pattern
from penstock.testing import Feed

START = datetime(2026, 12, 31, 23, 59, tzinfo=UTC)
SCHEMA = (
    "user string, at timestamp, n int, kind string, _source struct<topic:string,partition:int,offset:long>"
)
WITHIN = 20
A, B, C, D = (f"kind = '{kind}'" for kind in "abcd")
PATTERNS = {
    "sequence": Pattern.one(A).then(B).then(C),
    "times": Pattern.times(3, A).then(B),
    "without": Pattern.one(A).then(B, unless=D).then(C),
    "never between": Pattern.times(2, A).then(C, unless=B),
    "ways": Pattern.any(Pattern.one(A).then(B), Pattern.one(C).then(D)).then(A),
    "overlapping": Pattern.one("kind in ('a', 'b')").then("kind in ('b', 'c')").then(B),
    "repeats": Pattern.one(A).then(Pattern.at_least(1, B)).then(C, unless=D),
}
REPEATING = {"repeats"}


def fits(condition):
    """The same condition in Python, by the kinds that it names."""
    if condition is None:
        return None
    kinds = set(condition.removeprefix("kind in ").removeprefix("kind = ")) & set("abcd")
    return lambda event: event[2] in kinds


def make_log(seed, users=30, events=900, span=200):
    random, log = Random(seed), []
    for number in range(events):
        time = number * span / events - random.choice((0, 0, 0, 1, random.randrange(6)))
        log.append(
            (random.choice([None, *(f"u{n}" for n in range(users))]), round(time), random.choice("abcd"))
        )
    return log


def spark_rows(log):
    return [
        (
            user,
            START + timedelta(seconds=time),
            number,
            kind,
            {"topic": "t", "partition": 0, "offset": number},
        )
        for number, (user, time, kind) in enumerate(log)
    ]


def seen(log, place):
    """The events of a key at one of them, in their order, by number."""
    user, time, _ = log[place]
    near = [
        (other[1], number)
        for number, other in enumerate(log[: place + 1])
        if other[0] == user and time - WITHIN < other[1] <= time
    ]
    return [number for _, number in sorted(near)]


def check(name, log, answers, strict):
    ways = [[(fits(s.condition), fits(s.unless), s.repeats) for s in way] for way in PATTERNS[name].ways]
    for place in range(len(log)):
        near = seen(log, place)
        all_of_them = reference.matches(ways, [log[number] for number in near], strict)
        possible = [[near[number] for number in each] for each in all_of_them]
        if not possible:
            assert place not in answers, (name, place)
            continue
        assert answers[place] in possible, (name, place)
        if name not in REPEATING and len(ways) == 1:
            newest = max(all_of_them, key=lambda each: each[::-1])
            assert answers[place] == [near[number] for number in newest], (name, place)


def emitted(rows):
    return {row.event.n: [event.n for event in row.matched] for row in rows}


@pytest.mark.parametrize("strict", [False, True], ids=["skipping", "strict"])
def test_replay_finds_what_the_reference_finds(spark, strict):
    log = make_log(seed=11)
    rows = spark.createDataFrame(spark_rows(log), SCHEMA).cache()
    for name, pattern in PATTERNS.items():
        operator = patterns.match(pattern, by="user", time="at", within=f"{WITHIN} seconds", strict=strict)
        check(name, log, emitted(rows.transform(operator).collect()), strict)


@pytest.mark.parametrize("name", ["without", "repeats"])
def test_a_stream_finds_the_same(spark, name):
    log = make_log(seed=12, events=600)
    operator = patterns.match(PATTERNS[name], by="user", time="at", within=f"{WITHIN} seconds")
    rows = spark_rows(log)
    with Feed(spark, lambda events: events.transform(operator), output="update", events=SCHEMA) as feed:
        for start in range(0, len(rows), 200):
            feed.send(events=rows[start : start + 200])
    answers = emitted(feed.results)
    assert len(answers) == len(feed.results) > 0
    check(name, log, answers, strict=False)


def test_matches_that_share_no_events_as_a_stream_and_in_replay(spark):
    log = make_log(seed=13, users=10, events=400)
    operator = patterns.match(
        PATTERNS["never between"], by="user", time="at", within=f"{WITHIN} seconds", overlap=False
    )
    rows = spark_rows(log)
    with Feed(spark, lambda events: events.transform(operator), events=SCHEMA) as feed:
        for start in range(0, len(rows), 100):
            feed.send(events=rows[start : start + 100])
    answers = emitted(feed.results)
    assert answers == emitted(spark.createDataFrame(rows, SCHEMA).transform(operator).collect())
    used = [number for match in answers.values() for number in match]
    assert len(used) == len(set(used)) > 30
    for match in answers.values():
        assert [log[number][2] for number in match] == ["a", "a", "c"]
        assert len({log[number][0] for number in match}) == 1
    assert {"user", "event", "matched", "truncated", "_source"} == set(feed.results[0].asDict())


def test_what_is_not_followed_by_something_as_a_stream_and_in_replay(spark):
    log = make_log(seed=14, users=20, events=300)
    pattern = Pattern.one(A).then(B).not_followed_by(C, within="8 seconds")
    operator = patterns.match(
        pattern, by="user", time="at", within=f"{WITHIN} seconds", watermark="7 seconds"
    )
    rows = spark_rows(log)
    with Feed(spark, lambda events: events.transform(operator), events=SCHEMA) as feed:
        for start in range(0, len(rows), 100):
            feed.send(events=rows[start : start + 100])
        before = len(feed.results)
        feed.advance(START + timedelta(seconds=1000))
    assert 0 < before < len(feed.results)
    assert emitted(feed.results) == emitted(spark.createDataFrame(rows, SCHEMA).transform(operator).collect())
    ways = [[(fits(A), None, False), (fits(B), None, False)]]
    ends = set()
    for user in {user for user, *_ in log}:
        own = [(time, n, kind) for n, (of, time, kind) in enumerate(log) if of == user]
        ended = reference.not_followed(ways, sorted(own), WITHIN, 8, fits(C))
        ends |= {sorted(own)[place][1] for place in ended}
    assert {row.event.n for row in feed.results} == ends
    assert {"user", "event", "matched", "truncated", "_source"} == set(feed.results[0].asDict())


def test_a_pattern_that_needs_a_timer_is_refused_in_real_time(spark):
    pattern = Pattern.one(A).not_followed_by(B, within="8 seconds")
    operator = patterns.match(pattern, by="user", time="at", within="1 minute")
    stream = (
        spark.readStream.format("rate").load().selectExpr("value as user", "timestamp as at", "'a' as kind")
    )
    with pytest.raises(FlowError, match="can't run in real-time mode: it runs Python for its rows"):
        refuse_limits("unpaid", stream.transform(operator))


@pytest.mark.parametrize("overlap", [True, False])
def test_keys_of_any_type_and_two_steps_at_one_time(spark, overlap):
    """Rows without a place come in their order; NaN is the same as NaN."""
    key = (float("nan"), b"\xff")
    rows = [(key, START, number, kind) for number, kind in enumerate("ab")]
    schema = "event struct<x:double,y:binary>, at timestamp, n int, kind string"
    frame = spark.createDataFrame(rows, schema).withColumnRenamed("event", "parts").coalesce(1)
    operator = patterns.match(
        Pattern.one(A).then(B), by="parts", time="at", within="1 minute", overlap=overlap
    )
    (row,) = frame.transform(operator).collect()
    assert ([event.n for event in row.matched], row.parts.y) == ([0, 1], b"\xff")
    if not overlap:
        with Feed(spark, lambda events: events.transform(operator), events=frame.schema) as feed:
            feed.send(events=rows[:1])
            (row,) = feed.send(events=rows[1:])
        assert [event.n for event in row.matched] == [0, 1]


def test_the_result_holds_the_key_the_events_and_the_place(spark):
    log = [("u", 0, "a"), ("v", 1, "b"), ("u", 2, "b")]
    pattern = Pattern.one(F.col("kind") == "a").then(B)
    operator = patterns.match(pattern, by="user", time="at", within="1 minute")
    (row,) = spark.createDataFrame(spark_rows(log), SCHEMA).transform(operator).collect()
    assert (row.user, row.event.n, [event.kind for event in row.matched]) == ("u", 2, ["a", "b"])
    assert (row.truncated, row._source.offset) == (False, 2)
    assert "_fits" not in row.event.asDict()


def test_descriptions_are_checked():
    with pytest.raises(FlowError, match="happens 0 times"):
        Pattern.times(0, A)
    with pytest.raises(FlowError, match="has none"):
        Pattern.any()
    with pytest.raises(FlowError, match="has a step that goes on"):
        patterns.match(PATTERNS["repeats"], by="user", time="at", within="1 minute", overlap=False)
    many = Pattern.one("n = 0")
    for number in range(1, 70):
        many = many.then(f"n = {number}")
    with pytest.raises(FlowError, match="70 conditions, at most 62"):
        patterns.match(many, by="user", time="at", within="1 minute")


@dataclass(frozen=True)
class Act(Event):
    user: str
    kind: str
    at: datetime


@dataclass(frozen=True)
class Found(Event):
    user: str
    evidence: list[str]
    at: datetime


acts = Topic("patterns.acts", Act, key="user")
found = Topic("patterns.found", Found, key="user")
watch = Pipeline("patterns")


@watch.flow(reads={"acts": acts}, writes=found, mode="realtime", checkpoint_interval="5 seconds")
def unlocked(acts):
    pattern = Pattern.times(3, "kind = 'failed'").then("kind = 'transfer'", unless="kind = 'reset'")
    matches = acts.transform(patterns.match(pattern, by="user", time="at", within="1 minute", at_most=20))
    ids = F.transform("matched", lambda act: act.id)
    return matches.select("event.id", "user", ids.alias("evidence"), "event.at")


def test_a_pattern_in_real_time(settings, spark, tmp_path):
    place = replace(settings, data=tmp_path)
    apply([acts, found], Broker(place))
    kinds = ["failed", "failed", "failed", "transfer", "reset", "transfer"]
    sent = [
        Act(user, kind, START + timedelta(seconds=number), id=f"{user}{number}")
        for user in ("ann", "bob")
        for number, kind in enumerate(kinds if user == "ann" else kinds[1:])
    ]
    with Runner(watch, place, spark=spark), Producer(place) as producer, Consumer(found, place) as consumer:
        producer.send_all(acts, sent)
        producer.flush()
        record = next(consumer.records(idle="1 minute"))  # and once more below: its loop was left
        assert (record.event.id, record.event.evidence) == ("ann3", ["ann0", "ann1", "ann2", "ann3"])
        assert [each.event.id for each in consumer.records(idle="2 seconds")] == ["ann3"]
