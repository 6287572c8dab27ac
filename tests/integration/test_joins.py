"""Two streams joined within a time: as a stream, in replay, by trying every pair; and through a crash."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from pyspark.sql import functions as F
from tests.reference import joins as reference

from penstock.errors import FlowError
from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.pipeline.state import compare_state, describe_state
from penstock.process import joins
from penstock.process.columns.names import SOURCE_TYPE
from penstock.process.windows import Watermark
from penstock.process.wire.messages import with_id
from penstock.testing import Feed

START = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
SCHEMA = "ad string, at timestamp, n int"


def at(seconds):
    return START + timedelta(seconds=seconds)


def make_sides(seed, events=240):
    """Clicks and impressions of some ads, one of them without a name; equal times, disorder of 5 seconds."""
    random = Random(seed)
    ads = [None, *(f"ad{number}" for number in range(12))]
    sides = ([], [])
    for number in range(events):
        time = number // 2 - random.choice((0, 0, 1, 5))
        sides[random.random() < 0.6].append((random.choice(ads), time, number))
    return sides


def operator(other, how):
    return joins.within(
        other, on="ad", time="at", before="20 seconds", after="3 seconds", how=how,
        watermark="10 seconds", names=("click", "impression"),
    )  # fmt: skip


def emitted(rows):
    return sorted(((row.click and row.click.n, row.impression and row.impression.n) for row in rows), key=str)


def kept(feed):
    """How many events are in state: those that came into it, less those that went."""
    states = [state for each in feed._query.recentProgress for state in each["stateOperators"]]
    assert sum(state["numRowsUpdated"] for state in states) > 0
    return sum(state["numRowsUpdated"] - state["numRowsRemoved"] for state in states)


def spark_rows(side):
    return [(ad, at(time), number) for ad, time, number in side]


LONGER = [pytest.param(how, marks=pytest.mark.long) for how in ("inner", "left", "right")]


@pytest.mark.parametrize("how", ["full", *LONGER])  # what is true of full is true of its parts
def test_every_pair_and_what_has_none(spark, how):
    clicks, impressions = make_sides(seed=len(how))
    expected = reference.within(clicks, impressions, 20, 3, how)
    frames = [spark.createDataFrame(spark_rows(side), SCHEMA) for side in (clicks, impressions)]
    assert emitted(frames[0].transform(operator(frames[1], how)).collect()) == expected

    def joined(clicks, impressions):
        return clicks.transform(operator(impressions, how))

    random = Random(1)
    with Feed(spark, joined, clicks=SCHEMA, impressions=SCHEMA) as feed:
        for first in range(0, 240, 80):
            batch = {
                name: [row for row in side if first <= row[2] < first + 80]
                for name, side in (("clicks", clicks), ("impressions", impressions))
            }
            for name in random.sample(sorted(batch), 2):  # either side first
                feed.send(**{name: spark_rows(batch[name])})
        feed.advance(at(400))
        assert emitted(feed.results) == expected
        assert kept(feed) == 0


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_what_can_find_no_other_is_emitted_at_once(spark, how):
    """A part of the key, or the time, is not known: no match, although the other side has the same.

    Nor does what is not known match the value that stands for it in the join.
    """

    def joined(clicks, impressions):
        within = joins.within(
            impressions, on=("ad", "user"), time="at", before="20 seconds", how=how,
            watermark="10 seconds", names=("click", "impression"),
        )  # fmt: skip
        return clicks.transform(within)

    schema = "ad string, user string, at timestamp, n int"
    rows = [("a", None, at(9), 1), ("a", "u", None, 2), (None, None, None, 3), ("a", "0", at(9), 4)]
    with Feed(spark, joined, clicks=schema, impressions=schema) as feed:
        feed.send(clicks=rows, impressions=rows)
        alone = [(number, None) for number in (1, 2, 3) if how in ("left", "full")]
        alone += [(None, number) for number in (1, 2, 3) if how in ("right", "full")]
        assert emitted(feed.results) == sorted([*alone, (4, 4)], key=str)
        assert kept(feed) == 2


@pytest.mark.parametrize("key", ["0L", "1.50", "false", "date'1970-01-01'", "x'00'", "struct(1 as a)"])
def test_a_key_may_have_any_type(spark, key):
    rows = f"values ({key}, timestamp'2026-01-01', 1), (null, timestamp'2026-01-01', 2) as t(ad, at, n)"
    sides = [spark.sql(f"select * from {rows}") for _ in range(2)]
    assert emitted(sides[0].transform(operator(sides[1], "full")).collect()) == [(1, 1), (2, None), (None, 2)]


REACHES = {
    "equal times": ({"before": "0 seconds"}, (0, 0)),
    "some time after": ({"after": ("3 seconds", timedelta(seconds=9))}, (-3, 9)),
    "some time before": ({"before": ("3 seconds", "9 seconds")}, (9, -3)),
}


@pytest.mark.parametrize("name", REACHES)
def test_reaches_that_leave_out_what_is_near(spark, name):
    reach, (before, after) = REACHES[name]
    clicks, impressions = make_sides(seed=4, events=120)
    expected = reference.within(clicks, impressions, before, after, "full")
    assert any(None not in pair for pair in expected)

    def joined(clicks, impressions):
        within = joins.within(
            impressions, on="ad", time="at", how="full", watermark="10 seconds",
            names=("click", "impression"), **reach,
        )  # fmt: skip
        return clicks.transform(within)

    sides = {"clicks": spark_rows(clicks), "impressions": spark_rows(impressions)}
    frames = {side: spark.createDataFrame(rows, SCHEMA) for side, rows in sides.items()}
    assert emitted(joined(**frames).collect()) == expected
    if name == "equal times":
        return  # the same plan with other numbers
    with Feed(spark, joined, clicks=SCHEMA, impressions=SCHEMA) as feed:
        feed.send(**{side: rows[: len(rows) // 2] for side, rows in sides.items()})
        feed.send(**{side: rows[len(rows) // 2 :] for side, rows in sides.items()})
        feed.advance(at(400))
    assert emitted(feed.results) == expected


def test_the_watermark_waits_for_the_source_that_is_furthest_back(spark):
    def joined(clicks, impressions):
        slow = Watermark("10 seconds", sources=("place", ["north", "south"]))
        return clicks.transform(
            joins.within(impressions, on="ad", time="at", before="20 seconds", how="left", watermark=slow)
        )

    schema = "ad string, place string, at timestamp"
    later = [("z", "north", at(500)), ("z", "south", at(5))]
    with Feed(spark, joined, clicks=schema, impressions=schema) as feed:
        feed.send(clicks=[("a", "north", at(0)), *later], impressions=later)
        assert not [row for row in feed.send(clicks=[("z", "north", at(501))]) if row.ad == "a"]
        ahead = [("z", place, at(520)) for place in ("north", "south")]
        found = [*feed.send(clicks=ahead, impressions=ahead), *feed.send(clicks=ahead)]
        assert [(row.ad, row.right) for row in found if row.ad == "a"] == [("a", None)]


def test_a_result_has_its_key_whichever_side_is_there(spark):
    clicks, impressions = (
        spark.createDataFrame(rows, SCHEMA) for rows in ([("a", at(0), 1)], [("b", at(0), 2)])
    )
    rows = clicks.transform(operator(impressions, "full")).collect()
    assert sorted((row.ad, row.click is None, row.impression is None) for row in rows) == [
        ("a", False, True),
        ("b", True, False),
    ]


@dataclass(frozen=True)
class Click(Event):
    ad: str
    at: datetime


@dataclass(frozen=True)
class Seen(Event):
    ad: str
    click: str
    impression: str | None
    at: datetime


clicks, impressions = Topic("joins.clicks", Click, key="ad"), Topic("joins.impressions", Click, key="ad")
seen = Topic("joins.seen", Seen, key="ad")
ads = Pipeline("joins")


@ads.flow(reads={"clicks": clicks, "impressions": impressions}, writes=seen, output="append")
def join(clicks, impressions):
    found = clicks.transform(operator(impressions, "left"))
    columns = ["click.id as click", "impression.id as impression", "click.at as at"]
    return found.selectExpr("ad", *columns, "_source")


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_flow_of_two_topics_goes_on_where_it_was(settings, spark, tmp_path):
    place = replace(settings, data=tmp_path)
    apply([clicks, impressions], Broker(place))

    def run(some_clicks, some_impressions):
        with Producer(place) as producer:
            producer.send_all(clicks, [Click("a", at(time), id=f"c{time}") for time in some_clicks])
            producer.send_all(impressions, [Click("a", at(time), id=f"i{time}") for time in some_impressions])
        with Runner(ads, place, once=True, spark=spark) as runner:
            assert runner.wait(120)

    run([10, 30, 60], [5])
    run([300], [58, 300])
    with Consumer(seen, place) as consumer:
        found = [(r.event.click, r.event.impression) for r in consumer.records(idle="1 second")]
    assert sorted(found, key=str) == [("c10", "i5"), ("c30", None), ("c300", "i300"), ("c60", "i58")]


def sourced(spark, rows, topic):
    """Rows of an ad and a number, each with its place in a topic."""
    types = f"ad string, at timestamp, n int, _source struct<{SOURCE_TYPE}>"
    places = [(*row, (topic, 0, offset, at(0), [])) for offset, row in enumerate(spark_rows(rows))]
    return spark.createDataFrame(places, types)


@pytest.mark.parametrize("how", ["inner", "full"])
def test_pairs_that_give_the_same_row_are_results_of_their_own(spark, how):
    """A click beside two impressions, and two of three streams: a table would keep one of what has one id."""
    clicks = sourced(spark, [("a", 20, 1), ("b", 20, 2)], "clicks")
    impressions = sourced(spark, [("a", 15, 1), ("a", 16, 2), ("c", 1, 3)], "impressions")
    pairs = clicks.transform(operator(impressions, how))
    expected = {"inner": 2, "full": 4}[how]

    def ids(rows):
        return [row.id for row in with_id(rows.select("ad", "_source"), "bought").collect()]

    assert len(ids(pairs)) == len({*ids(pairs)}) == expected
    views = sourced(spark, [("a", 18, 1), ("a", 19, 2)], "views")
    timed = pairs.withColumn("at", F.coalesce("click.at", "impression.at"))
    thrice = timed.transform(operator(views, "inner"))
    assert len(ids(thrice)) == len({*ids(thrice)}) == 4
    places = {tuple(each and each.topic for each in row._source.joined) for row in thrice.collect()}
    assert places == {("views", "impressions")}


def test_a_flow_that_uses_other_columns_does_not_go_on_with_the_state_of_these(spark):
    """Spark keeps what is used, and does not look at names: it would take one for the other."""

    def stream(*columns):
        return spark.readStream.format("rate").load().selectExpr("timestamp as at", *columns)

    def described(frame):
        return describe_state("1", frame, ["clicks"])

    sides = ("value as ad", "'a' as title", "'b' as page", "1 as n", "2 as m")
    found = stream(*sides).transform(operator(stream(*sides), "left"))
    counts = stream(*sides).groupBy("ad").agg(F.sum("n").alias("n"), F.sum("m").alias("m"))
    for rows, one, other in ((found, "click.title", "click.page"), (counts, "n", "m")):
        before, same, after = (described(rows.selectExpr("ad", column)) for column in (one, one, other))
        assert all(each.kept for each in compare_state(before, same))
        (lost,) = [each for each in compare_state(before, after) if not each.kept]
        assert lost.subject == "columns of state"
    for changing in ("max(now())", "max(nullif(n + m, 3))", "max(filter(array(n), x -> x > 1))"):
        before, after = (
            described(stream(*sides).groupBy("ad").agg(F.expr(changing).alias("n"))) for _ in range(2)
        )
        assert all(each.kept for each in compare_state(before, after))


def test_what_can_not_be_joined_is_refused(spark):
    rows = spark.createDataFrame([], SCHEMA)
    with pytest.raises(FlowError, match="no limit in time"):
        joins.within(rows, on="ad", time="at", watermark="1 second")
    for reach, reason in (
        ({"before": ("9 s", "3 s")}, "from '9 s' to '3 s', which is less"),
        ({"before": ("3 s", "9 s"), "after": "3 s"}, "leaves out what is between"),
    ):
        with pytest.raises(FlowError, match=reason):
            joins.within(rows, on="ad", time="at", watermark="1 second", **reach)
    with pytest.raises(FlowError, match="the time 'ad' is string, expected a timestamp"):
        rows.transform(joins.within(rows, on="n", time="ad", watermark="1 second", before="1 second"))
    with pytest.raises(FlowError, match="no 'outer' join"):
        joins.within(rows, on="ad", time="at", watermark="1 second", before="1 second", how="outer")
    with pytest.raises(FlowError, match="names 'ad' and 'right' are not free"):
        joins.within(rows, on="ad", time="at", watermark="1 second", before="1 s", names=("ad", "right"))
    with pytest.raises(FlowError, match="'right' side of a join has no column 'when'"):
        rows.transform(
            joins.within(rows, on="ad", time=("at", "when"), watermark="1 second", before="1 second")
        )
    with pytest.raises(FlowError, match="a join of 'ad', string, with 'ad', int"):
        rows.transform(operator(rows.withColumn("ad", F.col("n")), "inner"))
