"""The notifications application: every one that is due is delivered, and none twice."""

from dataclasses import replace

import pytest
from tests import quick

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.notifications.command import demo
from penstock.apps.notifications.events import requested
from penstock.apps.notifications.pipeline import once
from penstock.apps.notifications.traffic import Traffic, round_of
from penstock.local import running
from penstock.testing import Feed


def test_each_round_of_an_occasion_is_due_once(spark):
    traffic = Traffic()
    with Feed(spark, once, requested=requested) as feed:
        for _ in range(2):
            feed.send(requested=[traffic.next() for _ in range(3_000)])
    assert all(row._side_output is None for row in feed.results)
    assert len(feed.results) == len(traffic.due)
    assert {round_of(row.id): (row.user, row.occasion) for row in feed.results} == traffic.due


@pytest.mark.long
@pytest.mark.timeout(600)
def test_through_a_kill_each_user_is_notified_once():
    with running(services=demo.services) as settings:
        quickly = replace(settings, spark=quick.SPARK)
        report = run(demo, Plan(rate=50, seconds=5, after=2, patience=300), RunStatus(STAGES), quickly)
    assert report.complete, report.problems
