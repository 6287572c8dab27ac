"""The sessions application: visits are corrected by late views, and end as a plain sessionizer has them."""

from dataclasses import replace
from datetime import UTC, timedelta

import pytest
from tests import quick

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.sessions.command import demo
from penstock.apps.sessions.events import views
from penstock.apps.sessions.expected import same, visits_of
from penstock.apps.sessions.pipeline import visited
from penstock.apps.sessions.traffic import Traffic
from penstock.local import running
from penstock.testing import Feed


def test_late_views_correct_and_retract_visits(spark):
    traffic = Traffic(users=40)
    with Feed(spark, visited, views=views) as feed:
        feed.send(views=[traffic.next() for _ in range(500)])
        feed.send(views=[*(traffic.next() for _ in range(200)), *traffic.rest()])
        feed.advance(max(view.at for view in traffic.sent) + timedelta(hours=5))
    known, too_late = {}, set()
    for row in feed.results:
        if row._side_output:
            too_late.add(row.id)
        elif row.kind == "retracted":
            del known[row.user, row.start.astimezone(UTC)]
        else:
            known[row.user, row.start.astimezone(UTC)] = (
                row.end.astimezone(UTC),
                *(row[name] for name in VALUES),
            )
    truth = visits_of(view for view in traffic.sent if view.id not in too_late)
    assert {kind for row in feed.results if (kind := row.kind)} >= {"on time", "corrected", "retracted"}
    assert known.keys() == truth.keys()
    assert all(same(truth[key], value) for key, value in known.items())


VALUES = ("rows", "landing", "last", "median_ms", "p95_ms")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_through_a_kill_visits_are_as_a_plain_sessionizer_has_them():
    with running(services=demo.services) as settings:
        plan = Plan(rate=150, seconds=5, after=2, patience=300)
        report = run(demo, plan, RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
