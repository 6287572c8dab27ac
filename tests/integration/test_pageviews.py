"""The page views application: results equal to the truth, in a stream, in a batch and through a kill -9."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests import quick

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.pageviews import sql
from penstock.apps.pageviews.command import demo
from penstock.apps.pageviews.events import PageCount, TopPages, View, views
from penstock.apps.pageviews.pipeline import TRACKED, about_top, minutes, running_minutes, top
from penstock.apps.pageviews.sketch_error import SketchError
from penstock.apps.pageviews.traffic import Traffic
from penstock.apps.pageviews.truth import ten_of
from penstock.local import running
from penstock.testing import Feed, Sent
from penstock.testing.topic_rows import TopicRows

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def as_batch(spark, sent):
    rows = TopicRows(views)
    made = [rows.row(each) for each in sent]
    return spark.createDataFrame(
        [tuple(row[name] for name in rows.schema.names) for row in made], rows.schema
    )


def test_late_views_correct_a_minute_and_those_too_late_are_set_apart(spark):
    def view(number, seconds):
        return View("/", f"visitor-{number}", "mobile", at(seconds), id=f"v{number}")

    with Feed(spark, minutes, views=views) as feed:
        (first,) = feed.send(views=[view(1, 5), view(2, 59), view(3, 71)])
        assert (first.kind, first.views, first.visitors, first.start) == (
            "on time",
            2,
            2,
            at(0).replace(tzinfo=None),
        )
        (again,) = feed.send(views=[view(2, 30)])
        assert (again.kind, again.views, again.visitors) == ("corrected", 3, 2)
        feed.advance(at(900))
        (refused,) = feed.send(views=[view(4, 40)])
        assert (refused._side_output, refused.id) == ("pageviews.too-late", "v4")


def test_a_replay_gives_what_the_truth_has(spark):
    traffic = Traffic()
    moments = [at(number / 20) for number in range(1_200)]
    frame = as_batch(spark, [Sent(traffic.next(now), written=now) for now in moments]).cache()
    truth = traffic.truth
    emitted = running_minutes(frame).collect()
    assert {(row.url, row.start.replace(tzinfo=UTC)): row.views for row in emitted} == {
        place: each.total() for place, each in truth.visitors.items()
    }
    assert sorted(sql.running_minutes(views=frame).collect()) == sorted(emitted)  # the same in SQL
    ranked = {}
    for row in top(frame).collect():
        ranked.setdefault(row.end.replace(tzinfo=UTC), {})[row.url] = row.rank, row.views
    assert ranked == {end: ten_of(counts) for end, counts in truth.windows().items()}
    sketches = [
        TopPages(
            *(time.replace(tzinfo=UTC) for time in (row.start, row.end)),
            row.views,
            [PageCount(*page) for page in row.pages],
        )
        for row in about_top(frame).collect()
    ]
    error = SketchError.of(truth.windows(), sketches, TRACKED)
    assert (error.missing, error.broken) == (0, 0)
    assert error.found > 7
    frame.unpersist()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_demo_is_complete_through_a_kill():
    with running() as settings:
        report = run(demo, Plan(100, 8), RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
