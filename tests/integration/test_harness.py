"""The harness over a flow in real time, which Spark's own writer writes."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests import quick
from tests.integration import instant as module
from tests.integration.instant import instant, orders
from tests.integration.shop import make_sales

from penstock.errors import FlowError
from penstock.log import Broker, Producer, apply
from penstock.testing import CrashHarness

MODULE = str(Path(module.__file__))


def feed(settings, number):
    with Producer(settings) as producer:
        producer.send_all(orders, make_sales(50, seed=number, start=1000 * (number + 1)))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_flow_in_real_time_is_killed_while_it_writes_and_reported(settings, spark, tmp_path):
    place = replace(settings, data=tmp_path, spark=quick.SPARK | {"spark.sql.shuffle.partitions": "2"})
    apply([orders], Broker(place))
    said = []
    harness = CrashHarness(
        instant, MODULE, place, feed=lambda number: feed(place, number), timeout=120, report=said.append
    )
    report = harness.run(spark, rounds=harness.rounds()[:1])
    assert report.kills == [{"instant.copy": "results.written"}]
    assert report.ok, report.verifications
    assert report.verifications[0].found >= report.verifications[0].expected == 100
    assert said[0] == "round 1 of 1: copy at results.written"
    assert "lets the pipeline work on what is left" in said
    assert "copy recomputes the results of 100 offsets" in said
    assert said[-1] == "nothing is lost, nothing doubled"


def test_a_pipeline_that_can_not_start_is_not_waited_for(settings, tmp_path):
    place = replace(settings, data=tmp_path)
    harness = CrashHarness(instant, "no/such/module.py", place, feed=lambda _: None)
    try:
        with pytest.raises(FlowError, match=r"ended before instant\.copy at results\.written"):
            harness.kill_at(harness.rounds()[0])
    finally:
        harness.close()
