"""The trending application: rankings equal to the truth, in a stream, a batch and through a kill -9."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests import quick

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.trending.batch import ranked as ranked_by_batch
from penstock.apps.trending.command import demo
from penstock.apps.trending.events import Trend, posts
from penstock.apps.trending.outcome import due, ranked, same
from penstock.apps.trending.pipeline import hopping
from penstock.apps.trending.traffic import Traffic
from penstock.local import running
from penstock.testing import Feed

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def trend(row):
    start, end = (time.replace(tzinfo=UTC) for time in (row.start, row.end))
    return Trend(row.tag, start, end, row.place, row.uses, row.usual, row.growth)


def test_the_rankings_of_a_stream_are_those_of_the_truth(spark):
    traffic = Traffic()
    made = [*traffic.history(NOON, timedelta(minutes=2), 20)]
    traffic.plant(NOON)
    made += [traffic.next(NOON + timedelta(seconds=number / 20)) for number in range(600)]
    made += [*traffic.closing(NOON + timedelta(seconds=30))]
    with Feed(spark, hopping, posts=posts) as feed:
        feed.send(posts=made[:2_600])
        feed.send(posts=made[2_600:])
        emitted = dict(ranked(map(trend, feed.results)))
    expected = due(traffic.posts, "5 seconds")
    assert emitted.keys() == expected.keys()
    assert all(same(expected[end], emitted[end]) for end in expected)
    assert emitted[NOON + timedelta(seconds=20)][0][0] == traffic.planted[0].tag


def test_a_batch_ranks_by_growth_too(spark):
    often = [("news", NOON - timedelta(seconds=second)) for second in range(1, 3_631)]
    risen = [("cat", NOON - timedelta(seconds=second)) for second in range(1, 21)]
    later = [("dog", NOON + timedelta(seconds=second)) for second in range(99)]
    frame = spark.createDataFrame([*often, *risen, *later], "tag string, at timestamp")
    assert [tuple(row) for row in ranked_by_batch(frame, NOON).collect()] == [("cat", 4.0), ("news", 1.0)]


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_demo_is_complete_through_a_kill():
    with running(services=("kafka",)) as settings:
        report = run(demo, Plan(20, 15), RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
