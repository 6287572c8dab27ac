"""Events with the row of their time: waited for, corrected, and in replay, against a plain search."""

from random import Random

import pytest
from pyspark.sql import functions as F
from tests.integration.cards import SOURCE, at
from tests.reference import joins as reference

from penstock.errors import FlowError
from penstock.process import joins
from penstock.process.windows import Watermark
from penstock.testing import Feed

EVENTS = f"card string, n int, at timestamp, {SOURCE}"
TABLE = f"card string, home string, since timestamp, _deleted boolean, {SOURCE}"


def source(number, seconds=0):
    return ("t", 0, number, at(seconds))


def make_logs(seed, count=200):
    """Events up to 5 seconds out of order; rows of a table up to 15 late, of equal times, some deleted."""
    random, events, versions = Random(seed), [], []
    for number in range(count):
        card, time = random.choice((None, *"abcd")), number // 2
        if random.random() < 0.6:
            events.append((number, (card, time - random.randrange(5), number)))
        else:
            value = None if random.random() < 0.2 else f"home{number}"
            versions.append((number + random.randrange(30), (card, time - random.randrange(5), value)))
    return events, sorted(versions, key=lambda each: each[0])


def event_row(place, event):
    card, time, number = event
    return (card, number, at(time), source(place, time))


def table_row(place, version):
    """A deletion has its key only: it is of the time at which it was written."""
    card, time, home = version
    return (card, home, None if home is None else at(time), home is None, source(place, time))


def operator(table, **options):
    return joins.as_of(table, on="card", time="at", since="since", name="profile", buckets=2, **options)


def emitted(rows):
    return {row.n: row.profile and row.profile.home for row in rows}


@pytest.mark.parametrize(("early", "seed"), [pytest.param("wait", 1, marks=pytest.mark.long), ("correct", 2)])
def test_each_event_gets_the_row_of_its_time(spark, early, seed):
    events, versions = make_logs(seed)
    expected = reference.as_of([each for _, each in events], [each for _, each in versions])
    options = {"watermark": "45 seconds"} if early == "wait" else {"early": "correct"}

    def joined(events, table):
        return events.transform(operator(table, history="1 hour", **options))

    with Feed(spark, joined, events=EVENTS, table=TABLE) as feed:
        for first in range(0, 240, 60):
            batch = range(first, first + 60)
            rows = {
                "events": [event_row(place, each) for place, each in events if place in batch],
                "table": [table_row(place, each) for place, each in enumerate_in(versions, batch)],
            }
            feed.send(**{name: each for name, each in rows.items() if each})
        if early == "wait":
            feed.advance(at(500))
        results = feed.results
    assert emitted(results) == expected  # of an event that was emitted again the last answer counts
    answers = [row.n for row in results if not row.corrected]
    assert sorted(answers) == sorted(expected)
    assert any(row.corrected for row in results) == (early == "correct")
    assert not any(row.truncated for row in results)
    frames = {
        "events": spark.createDataFrame([event_row(*each) for each in events], EVENTS),
        "table": spark.createDataFrame([table_row(*each) for each in enumerate_in(versions)], TABLE),
    }
    assert emitted(joined(**frames).collect()) == expected


def enumerate_in(versions, batch=None):
    """Rows of the table with their places in its log, if they came in a batch."""
    return [(place, each) for place, (came, each) in enumerate(versions) if batch is None or came in batch]


def test_versions_go_after_their_time_and_an_older_event_says_so(spark):
    def joined(events, table):
        return events.transform(operator(table, history="10 seconds", early="correct"))

    with Feed(spark, joined, events=EVENTS, table=TABLE) as feed:
        feed.send(table=[table_row(n, ("a", n, f"home{n}")) for n in range(5)])
        assert emitted(feed.send(events=[event_row(0, ("a", 2, 0))])) == {0: "home2"}
        feed.send(events=[event_row(1, ("a", 100, 1))])
        feed.send(events=[event_row(2, ("a", 101, 2))])
        (early, late) = feed.send(events=[event_row(3, ("a", 2, 3)), event_row(4, ("a", 4, 4))])
        assert (early.profile, early.truncated) == (None, True)
        assert (late.profile.home, late.truncated) == ("home4", False)


def test_what_can_not_be_joined_is_refused(spark):
    events, table = (spark.createDataFrame([], schema) for schema in (EVENTS, TABLE))
    with pytest.raises(FlowError, match="need a watermark"):
        operator(table, history="1 hour")
    with pytest.raises(FlowError, match="can't 'guess'"):
        operator(table, history="1 hour", early="guess")
    with pytest.raises(FlowError, match="has no column 'card'"):
        events.drop("card").transform(operator(table, history="1 hour", early="correct"))
    with pytest.raises(FlowError, match="have a column 'profile' already"):
        events.withColumn("profile", events.n).transform(operator(table, history="1 hour", early="correct"))


KEYED = "struct<name:string,weight:double,day:timestamp>"


def test_keys_of_any_type_and_rows_without_a_place(spark):
    """With `since` nothing is asked of the log; each of two events of one time is corrected."""
    events, table = f"who {KEYED}, n int, at timestamp", f"who {KEYED}, home string, since timestamp"
    nan = ("a, b", float("nan"), at(0))
    rows = [(nan, 1, at(5)), (nan, 2, at(5)), (("a", 0.0, at(0)), 3, at(5))]
    versions = [(nan, "Graz", at(4)), (nan, "Linz", at(4)), (("a", -0.0, at(0)), "Wels", at(5))]

    def joined(events, table):
        as_of = joins.as_of(
            table, on="who", time="at", since="since", history="1 hour", early="correct", buckets=2
        )
        return events.transform(as_of)

    with Feed(spark, joined, events=events, table=table) as feed:
        feed.send(events=rows)
        feed.send(table=versions[:1])
        feed.send(table=versions[1:])
    homes = {1: "Linz", 2: "Linz", 3: "Wels"}
    assert {row.n: row.row.home for row in feed.results if row.corrected} == homes
    assert sorted(row.n for row in feed.results) == [1, 1, 1, 2, 2, 2, 3, 3]
    frames = (spark.createDataFrame(rows, events), spark.createDataFrame(versions, table).coalesce(1))
    assert {row.n: row.row.home for row in joined(*frames).collect()} == homes


def test_what_is_dated_ahead_waits_as_long_as_its_own_time_says(spark):
    def joined(events, table):
        mark = Watermark("10 seconds", future="1 minute")
        return events.transform(operator(table, history="1 hour", watermark=mark))

    ahead = ("a", 2, at(600), source(1, 0))
    events = [event_row(0, ("a", 0, 1)), ahead, event_row(2, ("a", 10, 3))]
    versions = [table_row(0, ("a", 0, "Graz")), table_row(1, ("a", 500, "Linz"))]
    with Feed(spark, joined, events=EVENTS, table=TABLE) as feed:
        feed.send(events=events, table=versions)
        feed.advance(at(300))
        assert emitted(feed.results) == {1: "Graz", 3: "Graz"}
        assert emitted(feed.advance(at(601))) == {2: "Linz"}
    frames = spark.createDataFrame(events, EVENTS), spark.createDataFrame(versions, TABLE)
    assert emitted(joined(*frames).collect()) == {1: "Graz", 2: "Linz", 3: "Graz"}


def test_keys_and_times_that_do_not_fit_are_refused_when_a_flow_is_planned(spark):
    events, table = (spark.createDataFrame([], schema) for schema in (EVENTS, TABLE))
    correct = {"history": "1 hour", "early": "correct"}
    with pytest.raises(FlowError, match="a join of 'card', string, with 'card', int"):
        events.transform(operator(table.withColumn("card", F.lit(1)), **correct))
    with pytest.raises(FlowError, match="a join of 'card', string, with 'card', int"):
        events.transform(joins.latest(table.withColumn("card", F.lit(1)), on="card"))
    for rows, versions in ((events.withColumn("at", F.lit("x")), table), (events, at_text(table))):
        with pytest.raises(FlowError, match="is string, expected a timestamp"):
            rows.transform(operator(versions, **correct))
    with pytest.raises(FlowError, match="has no column '_source'"):
        events.transform(joins.as_of(table.drop("_source"), on="card", time="at", **correct))
    with pytest.raises(FlowError, match="over 0 buckets"):
        joins.as_of(table, on="card", time="at", buckets=0, **correct)
    with pytest.raises(FlowError, match="over 0 buckets"):
        joins.tables(table, on="card", keys="card", buckets=0)
    for names in ({"stream": events}, {"card": events}):
        with pytest.raises(FlowError, match="merged streams have two columns"):
            joins.merged(by="card", time="at", watermark="1 second", **names)
    other = events.withColumn("card", F.lit(1))
    with pytest.raises(FlowError, match="a join of 'card', string, with 'card', int"):
        joins.merged(by="card", time="at", watermark="1 second", one=events, other=other)
    dotted = [rows.withColumnRenamed("card", "the.card") for rows in (events, table)]
    options = {"on": "the.card", "name": "profile"}
    assert dotted[0].transform(joins.latest(dotted[1], **options)).collect() == []
    as_of = joins.as_of(dotted[1], time="at", **options, **correct)
    assert dotted[0].transform(as_of).collect() == []
    assert joins.merged(by="the.card", time="at", watermark="1 second", one=dotted[0]).collect() == []


def at_text(table):
    return table.withColumn("since", F.lit("x"))
