"""What is recent of a key: as a stream, in replay, and by the reference; and the columns over it."""

import math
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import functions as F
from tests.reference import keyed as reference

from penstock.errors import FlowError
from penstock.pipeline.state import compare_state, describe_state
from penstock.process import keyed
from penstock.testing import Feed

START = datetime(2026, 3, 29, 0, 59, tzinfo=UTC)  # across a change of clocks in half of the world
SCHEMA = (
    "card string, at timestamp, n int, amount decimal(12,2), lat double, lon double, shop string, "
    "_source struct<topic:string,partition:int,offset:long>"
)


def row(number, key, seconds):
    place = {"topic": "payments", "partition": 0, "offset": number}
    shop = None if number % 7 == 0 else f"shop{number % 5}"
    amount = None if number % 11 == 0 else number * 25
    return key, START + timedelta(seconds=seconds), number, amount, number % 90, number % 180, shop, place


def spark_rows(log):
    from decimal import Decimal

    made = [row(number, *event) for number, event in enumerate(log)]
    return [
        (*r[:3], None if r[3] is None else Decimal(r[3]) / 100, float(r[4]), float(r[5]), *r[6:])
        for r in made
    ]


def make_log(seed, keys=40, events=1500, span=600, late=50):
    """Disorder, equal times, a null key, halves of a second, a hot key."""
    random, log = Random(seed), []
    names = [None, "hot", *(f"k{number}" for number in range(keys))]
    for number in range(events):
        clock = number * span / events
        behind = random.choice((0, 0, 0, 1, 0.5, random.randrange(10), random.randrange(late)))
        log.append((random.choice([*names, "hot", "hot"]), math.floor(2 * (clock - behind)) / 2))
    return log


def emitted(rows):
    return {each.event.n: ([other.n for other in each.recent], each.truncated) for each in rows}


def as_stream(spark, operator, log, batches):
    rows = spark_rows(log)
    size = -(-len(rows) // batches)
    with Feed(spark, lambda events: events.transform(operator), output="update", events=SCHEMA) as feed:
        for start in range(0, len(rows), size):
            feed.send(events=rows[start : start + size])
        return feed.results


def as_replay(spark, operator, log):
    rows = spark_rows(log)
    Random(1).shuffle(rows)  # the order is the log's, not that of the rows
    return spark.createDataFrame(rows, SCHEMA).transform(operator).collect()


@pytest.mark.parametrize("bounded", [False, True])
def test_stream_and_replay_give_what_the_reference_says(spark, bounded):
    log = make_log(seed=3)
    operator = keyed.recent(by="card", time="at", within="1 minute", at_most=1000, bounded_keys=bounded)
    expected = {n: (found, False) for n, found in enumerate(reference.recent(log, 60))}
    replayed, streamed = as_replay(spark, operator, log), as_stream(spark, operator, log, batches=4)
    assert len(replayed) == len(streamed) == len(log)
    assert emitted(replayed) == expected
    assert emitted(streamed) == expected


def test_what_is_cut_is_flagged_and_the_same_in_each_mode(spark):
    log = make_log(seed=5)
    operator = keyed.recent(by="card", time="at", within="1 minute", at_most=8)
    replayed = emitted(as_replay(spark, operator, log))
    assert emitted(as_stream(spark, operator, log, batches=3)) == replayed
    whole = reference.recent(log, 60)
    for number, (found, truncated) in replayed.items():
        assert found[0] == number, "the event itself is never cut"
        assert set(found) <= set(whole[number])
        assert truncated or found == whole[number]
    assert any(truncated for _, truncated in replayed.values())
    assert not all(truncated for _, truncated in replayed.values())


def test_state_expires_and_what_is_later_than_the_watermark_is_dropped(spark):
    operator = keyed.recent(by="card", time="at", within="10 seconds", watermark="5 seconds")
    with Feed(spark, lambda events: events.transform(operator), output="update", events=SCHEMA) as feed:
        feed.send(events=spark_rows([("a", 0), ("b", 1)]))
        feed.send(events=spark_rows([("a", 300)]))
        assert feed.send(events=spark_rows([("b", 2)])) == []
        states = [state for each in feed._query.recentProgress for state in each["stateOperators"]]
    assert sum(state["numRowsDroppedByWatermark"] for state in states) > 0
    assert sum(state["numRowsRemoved"] for state in states) == 4  # two events, each in two stretches of time


def test_columns_over_what_is_recent(spark):
    log = [("a", 0), ("a", 30), ("a", 30), ("b", 31), ("a", 65)]
    rows = spark_rows(log)
    operator = keyed.recent(by="card", time="at", within="10 minutes")
    frame = spark.createDataFrame(rows, SCHEMA).transform(operator)
    last = frame.where("event.n = 4").select(
        keyed.count().alias("all"),
        keyed.count(within="1 minute").alias("minute"),
        keyed.count(where=lambda x: x.n % 2 == 0).alias("even"),
        keyed.sum("amount", type="decimal(38,2)").alias("sum"),
        keyed.avg("amount", within="40 seconds").alias("avg"),
        keyed.min("n").alias("least"),
        keyed.max("amount").alias("most"),
        keyed.distinct("shop").alias("shops"),
        keyed.previous("n").alias("before"),
        keyed.since(lambda x: x.n == 1).alias("ago"),
        keyed.since(lambda x: x.n == 4).alias("itself"),
        keyed.speed_kmh("lat", "lon").alias("kmh"),
    )
    found = last.collect()[0]
    assert (found.all, found.minute, found.even, found.least, found.before) == (4, 3, 3, 0, 2)
    assert str(found.sum) == "1.75"
    assert found.avg == pytest.approx((0.25 + 0.5 + 1.0) / 3)
    assert str(found.most) == "1.00"
    assert (found.shops, found.ago, found.itself) == (3, 35.0, None)
    assert found.kmh == pytest.approx(2 * 157.2 / 35 * 3600, rel=0.01)


def test_speeds_at_the_edges(spark):
    frame = spark.createDataFrame(spark_rows([("a", 0), ("a", 0), ("b", 0)]), SCHEMA)
    operator = keyed.recent(by="card", time="at", within="1 minute")
    found = frame.transform(operator).select("event.n", keyed.speed_kmh("lat", "lon").alias("kmh"))
    assert {each.n: each.kmh for each in found.collect()} == {0: None, 1: math.inf, 2: None}


def test_an_event_without_a_time_is_not_lost_silently(spark):
    frame = spark.createDataFrame([(None, None, 0, None, 0.0, 0.0, None, None)], SCHEMA)
    operator = keyed.recent(by="card", time="at", within="1 minute")
    with pytest.raises(Exception, match="an event has no time in column 'at'"):
        frame.transform(operator).collect()


def test_a_session_that_would_leave_events_out_is_refused(spark):
    operator = keyed.recent(by="card", time="at", within="1 minute")
    name = "spark.sql.streaming.useStreamlineAggregator"
    spark.conf.set(name, "false")
    try:
        with pytest.raises(FlowError, match=f"not every event; set {name} to true"):
            spark.readStream.format("rate").load().select(
                F.col("timestamp").alias("at"), F.lit("a").alias("card")
            ).transform(operator)
    finally:
        spark.conf.set(name, "true")


def test_descriptions_are_checked():
    with pytest.raises(FlowError, match="at most 0 recent events"):
        keyed.recent(by="card", time="at", within="1 minute", at_most=0)
    with pytest.raises(FlowError, match="a watermark has no use"):
        keyed.recent(by="card", time="at", within="1 minute", watermark="1 minute", bounded_keys=True)


def test_only_what_is_wanted_of_recent_events_is_kept(spark):
    log = make_log(4, events=300)
    all_of_it = keyed.recent(by="card", time="at", within="20 seconds", at_most=5)
    some = keyed.recent(by="card", time="at", within="20 seconds", at_most=5, keeps=["n", "shop"])
    rows = spark.createDataFrame(spark_rows(log), SCHEMA)
    streamed, replayed = as_stream(spark, some, log, batches=3), rows.transform(some).collect()
    assert emitted(streamed) == emitted(replayed) == emitted(rows.transform(all_of_it).collect())
    assert set(replayed[0].recent[0].asDict()) == {"n", "shop", "_us", "_partition", "_offset"}
    assert {"amount", "card"} < set(replayed[0].event.asDict())


def test_a_column_that_looks_further_back_than_what_is_recent_is_refused(spark):
    rows = spark.createDataFrame(spark_rows([("a", 0)]), SCHEMA)
    recent = rows.transform(keyed.recent(by="card", time="at", within="1 minute"))
    assert recent.select(keyed.count(within="1 minute")).collect()[0][0] == 1
    with pytest.raises(SparkRuntimeException, match="looks 0:02:00 back, further than"):
        recent.select(keyed.count(within="2 minutes")).collect()


@pytest.mark.parametrize(
    ("changed", "kept"), [({}, True), ({"within": "2 minutes"}, False), ({"at_most": 5}, False)]
)
def test_state_of_another_reach_is_not_gone_on_with(spark, changed, kept):
    """It was kept for the other one: what is counted would be too little, without a word."""

    def described(**options):
        rows = spark.readStream.format("rate").load().selectExpr("value as card", "timestamp as at")
        recent = keyed.recent(by="card", time="at", **{"within": "1 minute", "at_most": 4, **options})
        return describe_state("1", rows.transform(recent), ["cards"])

    found = list(compare_state(described(), described(**changed)))
    assert all(each.kept for each in found) == kept


PLAIN = "card string, at timestamp, n int, kind string, lat double, lon double, tags map<string,string>"


def plain_row(number, seconds, kind="a"):
    return "c", START + timedelta(seconds=seconds), number, kind, float(number), 0.0, {"a": "b"}


def looked_back(events):
    recent = events.transform(keyed.recent(by="card", time="at", within="1 minute"))
    seen = F.transform("recent", lambda other: other.n).alias("seen")
    before, kmh = keyed.previous("n").alias("before"), keyed.speed_kmh("lat", "lon").alias("kmh")
    return recent.select("event.n", seen, before, kmh, "truncated")


def test_events_without_a_place_are_never_their_own_predecessors(spark):
    """Neither in a batch, where the order of the rows counts, nor one after the other in a stream."""
    rows = [plain_row(1, 0), plain_row(2, 0), plain_row(2, 0), plain_row(3, 5), plain_row(4, 5)]
    found = spark.createDataFrame(rows, PLAIN).coalesce(1).transform(looked_back).collect()
    assert sorted(row.seen for row in found) == [[1], [2, 1], [2, 2, 1], [3, 2, 2, 1], [4, 3, 2, 2, 1]]
    assert {row.n: row.before for row in found if row.n != 2} == {1: None, 3: 2, 4: 3}
    assert {row.n: row.kmh for row in found if row.n in (1, 4)} == {1: None, 4: math.inf}
    with Feed(spark, looked_back, output="update", events=PLAIN) as feed:
        for row in rows:
            feed.send(events=[row])
    assert [(row.n, row.seen[0], len(row.seen)) for row in feed.results] == [
        (1, 1, 1), (2, 2, 2), (2, 2, 3), (3, 3, 4), (4, 4, 5),
    ]  # fmt: skip
    assert [row.kmh for row in feed.results][-1] == math.inf
    assert [feed.results[number].before for number in (0, 1, 4)] == [None, 1, 3]
    assert feed.results[2].before in (1, 2)  # both are as old as it


def test_united_topics_may_share_times_partitions_and_offsets(spark):
    """And rows that were exploded of one event, too."""
    placed = f"{PLAIN}, _source struct<topic:string,partition:int,offset:long,written:timestamp>"
    rows = [
        (*plain_row(number, 0), (topic, 0, 7, START + timedelta(seconds=written)))
        for number, topic, written in ((1, "a", 2), (2, "b", 1), (3, "b", 1))
    ]
    found = {row.n: row for row in spark.createDataFrame(rows, placed).transform(looked_back).collect()}
    assert {len(found[number].seen) for number in (2, 3)} == {1, 2}  # written first
    assert (found[1].seen[0], sorted(found[1].seen)) == (1, [1, 2, 3])
    assert all(row.seen[0] == row.n != row.before for row in found.values())


def test_events_before_1970_are_dropped_and_counted_in_a_stream_with_a_watermark(spark):
    old = [(*plain_row(1, 0)[:1], datetime(1969, 12, 31, tzinfo=UTC), *plain_row(1, 0)[2:])]
    assert len(spark.createDataFrame(old, PLAIN).transform(looked_back).collect()) == 1
    with Feed(spark, looked_back, output="update", events=PLAIN) as feed:
        assert feed.send(events=old) == []
        states = [state for each in feed._query.recentProgress for state in each["stateOperators"]]
    assert sum(state["numRowsDroppedByWatermark"] for state in states) > 0


def test_names_that_are_not_free_and_times_that_are_none_are_refused(spark):
    rows = spark.createDataFrame([plain_row(1, 0)], PLAIN)
    with pytest.raises(FlowError, match="the time 'kind' is string, expected a timestamp"):
        rows.transform(keyed.recent(by="card", time="kind", within="1 minute"))
    with pytest.raises(FlowError, match="the time 'kind' is string, expected a timestamp"):
        rows.transform(
            keyed.stateful(print, by="card", state="n int", returns="n int", time="kind", watermark="1 hour")
        )
    with pytest.raises(FlowError, match="has no column 'user'; it has card"):
        rows.transform(keyed.recent(by="user", time="at", within="1 minute"))
    with pytest.raises(FlowError, match="'recent' is a column of every result"):
        keyed.recent(by="card", time="at", within="1 minute", tables={"recent": rows})
    emitted_twice = rows.transform(keyed.recent(by="card", time="at", within="1 minute")).select("event.*")
    assert emitted_twice.transform(looked_back).collect()[0].seen == [1]
    dotted = rows.withColumnRenamed("card", "the.card").withColumnRenamed("at", "the.at")
    found = dotted.transform(keyed.recent(by="the.card", time="the.at", within="1 minute"))
    assert found.select("recent.n").collect()[0].n == [1]


def test_a_key_that_is_nan_is_refused_where_a_function_would_have_to_find_it(spark):
    rows = spark.sql("select double('NaN') as key, 1 as n")
    with pytest.raises(SparkRuntimeException, match="a key in column 'key' is NaN; cast it to a text"):
        rows.transform(keyed.stateful(print, by="key", state="total int", returns="n int")).collect()
