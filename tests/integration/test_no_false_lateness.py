"""A backlog of any shape makes no event late that is in the order of its writer."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests import quick
from tests.integration import hours as module
from tests.integration.hours import Reading, copied, counted, hours, late, native, raw

from penstock.log import Broker, Consumer, Groups, Producer, apply
from penstock.pipeline import Runner, verify
from penstock.testing import Driver
from penstock.testing.listener import PointListener

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 24 * 4
PATIENCE = 120.0
MODULE, CHAIN = str(Path(module.__file__)), ("--flow", "copy", "--flow", "count")


def readings(origin, count=DAY):
    """A day of a partition of the raw topic: every quarter of an hour, from sensors of its own."""
    for number in range(count):
        at = START + timedelta(minutes=15 * number)
        yield Reading(f"{origin}{number % 7}", at, id=f"{origin}.{number}")


@pytest.fixture
def place(settings, tmp_path):
    """Settings with topics that nobody has used."""
    broker = Broker(settings)
    for topic in broker.topics():
        if topic.startswith(("hours.", "_penstock_ledger.hours.", "_penstock_clock.hours.")):
            broker.delete(topic)
    time.sleep(0.5)
    apply([raw, copied, counted, late, native], broker)
    return replace(settings, data=tmp_path, spark=quick.SPARK)


def bring(settings, origin, events):
    """Write to the copied topic as a lane of the flow `copy` does."""
    with Producer(settings) as producer:
        for number, event in enumerate(events):
            made = f"hours.copy {raw.name}/{origin}/{number}".encode()
            producer.send(copied, event, headers=[("penstock.made-by", made)])


def read(topic, settings):
    with Consumer(topic, settings) as consumer:
        return [record.event for record in consumer.records(idle="500 ms")]


def closed(settings, rows, runner=None, topic=counted):
    """Windows, once they hold so many rows."""
    found, deadline = [], time.monotonic() + PATIENCE
    while sum(each.rows for each in found) < rows:
        assert time.monotonic() < deadline, (found, read(late, settings))
        assert runner is None or not runner.wait(0)
        found = read(topic, settings)
    return found


@pytest.mark.long
@pytest.mark.timeout(200)
def test_a_lane_that_comes_a_day_after_another_is_not_late(place, settings, spark):
    """A flow upstream was killed when one of its lanes was written, and goes on when all of that is read."""
    with Producer(settings) as producer:
        for origin in (0, 1):
            for event in readings(origin):
                producer.send(raw, event, partition=origin)
    Broker(settings).ensure("_penstock_ledger.hours.copy", 2, {"cleanup.policy": "compact"})
    bring(settings, 0, readings(0))
    with Runner(hours, place, spark=spark, flows=["count", "count_natively"]) as runner:
        for flow in ("count", "count_natively"):
            wait_until_read(settings, flow)
        time.sleep(3)
        assert read(counted, settings) == read(native, settings) == []
        bring(settings, 1, readings(1))
        Groups(settings).place("penstock.hours.copy", {raw.name: dict.fromkeys((0, 1), DAY)})
        found = closed(settings, 2 * DAY - 8, runner)  # the last hour is open
        natively = closed(settings, 2 * DAY - 8, runner, native)
    assert sum(each.rows for each in natively) == 2 * DAY - 8
    assert {each.kind for each in found} == {"on time"}
    assert read(late, settings) == []


def wait_until_read(settings, flow):
    deadline = time.monotonic() + PATIENCE
    while Groups(settings).positions(f"penstock.hours.{flow}").get(copied.name) != Broker(
        settings
    ).committed_end(copied.name):
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.long
@pytest.mark.timeout(200)
def test_a_run_that_ends_by_itself_closes_what_it_can(place, settings, spark):
    """Several batches, whose ticks come after the run has looked where its topics end."""
    with Producer(settings) as producer:
        for origin in (0, 1):
            producer.send_all(raw, readings(origin))
    for flow in ("copy", "count", "count"):
        with Runner(hours, place, spark=spark, flows=[flow], once=True) as runner:
            assert runner.wait(PATIENCE)
    found = read(counted, settings)
    assert sum(each.rows for each in found) == 2 * DAY - 8
    assert read(late, settings) == []
    verification = {each.flow: each for each in verify(hours, place, spark)}["count"]
    assert verification.ok, verification
    assert verification.windows.waiting == 8


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_kill_between_a_commit_and_its_tick_loses_no_time(place, settings):
    """The batch is finished, its tick is not written: what it held is looked up in the log."""
    with Producer(settings) as producer:
        for origin in (0, 1):
            producer.send_all(raw, readings(origin))
    with PointListener(lambda point, subject: (point, subject) == ("clock.tick", "hours.count")) as points:
        run = Driver(hours.name, MODULE, place, environment=points.environment, options=CHAIN)
        run.start()
        deadline = time.monotonic() + PATIENCE
        while not points.passed["clock.tick", "hours.count"]:
            assert time.monotonic() < deadline, run.last_words()
            time.sleep(0.1)
        wait_until_read(settings, "count")
        run.kill()
    assert read(counted, settings) == []
    run = Driver(hours.name, MODULE, place, options=CHAIN)
    run.start()
    try:
        closed(settings, 2 * DAY - 8)
        assert run.stop() == 0
    finally:
        run.kill()
    assert read(late, settings) == []
