"""Sketches are wrong by no more than they say, and duplicates are left out on Spark."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from pyspark.sql import functions as F

from penstock.errors import FlowError
from penstock.process import dedup, sketches, windows
from penstock.process.windows import Late
from penstock.testing import Feed

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def test_sketches_keep_their_error(spark):
    random = Random(1)
    words = [f"w{int(random.paretovariate(0.7)) % 5000}" for _ in range(20_000)]
    rows = spark.createDataFrame(
        [(word, float(number)) for number, word in enumerate(words)], "word string, value double"
    )
    emitted = rows.agg(
        sketches.distinct("word", error=0.01).alias("words"),
        sketches.quantile("value", 0.9, error=0.01).alias("p90"),
        sketches.frequent("word", 5).alias("top"),
        sketches.counts("word", error=0.001).alias("counts"),
    ).first()
    counted = Counter(words)
    assert emitted.words == pytest.approx(len(counted), rel=0.04)
    assert emitted.p90 == pytest.approx(18_000, abs=0.02 * 20_000)
    assert [each.item for each in emitted.top][:3] == [word for word, _ in counted.most_common(3)]
    for word, count in counted.most_common(20):
        assert count <= sketches.estimate(spark, bytes(emitted.counts), word) <= count + 0.001 * len(words)


def test_sketches_run_in_windows(spark):
    minutes = windows.tumbling("1 minute", time="at", by="page", watermark="10 seconds")
    users = minutes.agg(
        sketches.distinct("user").alias("users"), sketches.quantile("value", 0.5).alias("median")
    )
    schema = "page string, user string, value double, at timestamp"
    with Feed(spark, lambda rows: rows.transform(users), rows=schema) as feed:
        feed.send(rows=[("/", f"u{n % 30}", float(n), at(n % 50)) for n in range(100)])
        (row,) = feed.advance(at(60))
    assert row.users == 30
    assert row.median == pytest.approx(49.5, abs=2)


REFUSED = {
    "an error of 2, expected a share from 0.00072 to 0.5": lambda: sketches.distinct("word", error=2),
    "an error of 0.0007,": lambda: sketches.distinct("word", error=0.0007),
    "an error of 0.0001, expected a share from 0.0001": lambda: sketches.quantile("value", 0.5, error=0.0001),
    "a quantile of 90": lambda: sketches.quantile("value", 90),
    "the 0 most frequent": lambda: sketches.frequent("word", 0),
    "2,000,000 tracked values": lambda: sketches.frequent("word", 20_000),
    "5 tracked values for the 6 most": lambda: sketches.frequent("word", 6, tracked=5),
    "an error of 1e-09": lambda: sketches.counts("word", error=1e-9),
    "a confidence of 99": lambda: sketches.counts("word", confidence=99),
}


@pytest.mark.parametrize("message", REFUSED)
def test_errors_that_a_sketch_can_not_keep_are_refused(message):
    with pytest.raises(FlowError, match=re.escape(message)):
        REFUSED[message]()


def test_duplicates_are_left_out_at_once_and_what_can_not_be_judged_is_set_aside(spark):
    once = dedup.first(
        "user", time="at", within="1 hour", watermark="1 minute", late=Late.send("late"), buckets=2
    )
    with Feed(spark, lambda rows: rows.transform(once), rows="user string, at timestamp, n long") as feed:
        first = feed.send(rows=[("ann", at(0), 1), ("ann", at(10), 2), ("bob", at(5), 3)])
        again = feed.send(rows=[("ann", at(20), 4), ("ann", at(3700), 5)])
        feed.advance(at(10_000))
        late = feed.send(rows=[("ann", at(30), 6), ("eve", at(9000), 7)])
    assert sorted(row.n for row in first) == [1, 3]
    assert [row.n for row in again] == [5]
    assert {(row.n, row._side_output) for row in late} == {(6, "late"), (7, None)}
    table = spark.createDataFrame(
        [("ann", at(0), 1), ("ann", at(10), 2), ("ann", at(4000), 3)], "user string, at timestamp, n long"
    )
    assert sorted(row.n for row in table.transform(once).collect()) == [1, 3]


def test_the_greatest_of_each_window(spark):
    minutes = windows.tumbling("1 minute", time="at", by="tag", watermark="10 seconds")
    top = minutes.top(2, "uses", F.count("*").alias("uses"))
    with Feed(spark, lambda rows: rows.transform(top), rows="tag string, at timestamp") as feed:
        feed.send(rows=[(tag, at(number)) for number, tag in enumerate("aabbbc")] + [("c", at(70))])
        feed.advance(at(120))
    assert [(row.tag, row.uses, row.rank) for row in feed.results if row.start == datetime(2026, 1, 1)] == [
        ("b", 3, 1),
        ("a", 2, 2),
    ]
