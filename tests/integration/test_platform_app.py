"""`make demo`: everything at once, through a kill -9."""

from dataclasses import replace

import pytest
from tests import quick

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.platform.command import demo
from penstock.local import installed, running


@pytest.mark.long
@pytest.mark.timeout(500)
def test_through_a_kill_alerts_and_views_are_what_log_and_source_say():
    with running(services=installed(demo.services)) as settings:
        plan = Plan(rate=100, seconds=8, warm_up=5)
        report = run(demo, plan, RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
