"""The ads application: the outcome of each impression, and what campaigns come to."""

from dataclasses import replace
from datetime import UTC, timedelta

import pytest
from tests import quick

from penstock.apps.ads.command import demo
from penstock.apps.ads.events import Click, Impression, clicks, impressions
from penstock.apps.ads.expected import click_through_of
from penstock.apps.ads.pipeline import click_through, matched
from penstock.apps.ads.traffic import Traffic, numbered
from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.local import running
from penstock.testing import Feed

OUTCOMES = "impression string, campaign string, click string, at timestamp"


def test_each_impression_has_its_outcome(spark):
    traffic = Traffic()
    sent = [*(traffic.next() for _ in range(1_500)), *traffic.rest()]
    with Feed(spark, matched, impressions=impressions, clicks=clicks) as feed:
        for some in (sent[:800], sent[800:]):
            feed.send(
                impressions=[each for each in some if isinstance(each, Impression)],
                clicks=[each for each in some if isinstance(each, Click)],
            )
        feed.advance(sent[-1].at + timedelta(hours=4))
    keys = numbered((row.impression, row.click) for row in feed.results)
    found = dict(zip(keys, ((row.campaign, row.at.astimezone(UTC)) for row in feed.results), strict=True))
    assert found == traffic.outcomes()
    assert len(feed.results) == len(found)
    known = [(row.impression, row.campaign, row.click, row.at) for row in feed.results]
    counted = {
        (row.campaign, row.start.astimezone(UTC)): (row.impressions, row.clicked, row.clicks)
        for row in click_through(spark.createDataFrame(known, OUTCOMES)).collect()
    }
    assert counted == click_through_of(traffic.outcomes())


@pytest.mark.long
@pytest.mark.timeout(600)
def test_through_a_kill_outcomes_and_click_through_are_right():
    with running(services=demo.services) as settings:
        plan = Plan(rate=200, seconds=5, after=2, patience=300)
        report = run(demo, plan, RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
