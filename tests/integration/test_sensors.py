"""The sensors application: hot and silent machines, and a gateway that is cut off."""

from dataclasses import replace
from datetime import UTC

import pytest
from tests import quick

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.sensors.command import demo
from penstock.apps.sensors.events import readings
from penstock.apps.sensors.expected import alerts_of
from penstock.apps.sensors.pipeline import DELAY, hot, silent
from penstock.apps.sensors.traffic import Traffic
from penstock.durations import duration
from penstock.local import running
from penstock.testing import Feed


def test_a_gateway_that_is_cut_off_makes_no_machine_silent(spark):
    traffic = Traffic(machines=30)
    sent = [*(traffic.next() for _ in range(2_000)), *traffic.rest()]
    with Feed(spark, silent, readings=readings) as feed:
        for some in (sent[:700], sent[700:]):
            feed.send(readings=some)
    with Feed(spark, hot, readings=readings, output="update") as warm:
        warm.send(readings=sent)
    found = [*feed.results, *warm.results]
    watermark = min(traffic.reached.values()) - duration(DELAY)
    assert traffic.outages > 1
    truth = alerts_of((machine.readings for machine in traffic.machines), watermark)
    assert {row.id: (row.kind, row.at.astimezone(UTC)) for row in found} == truth
    assert len(found) == len(truth)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_through_a_kill_all_alerts_come_once():
    with running(services=demo.services) as settings:
        plan = Plan(rate=300, seconds=5, after=2, patience=300)
        report = run(demo, plan, RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
