"""Flows in SQL beside the same flows in Python: the same results, in every mode, through kills."""

import time
from collections import Counter
from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from tests import quick
from tests.integration import both_ways as module
from tests.integration.both_ways import BothWays, Click, Page, View, both, clicks, pages, views

from penstock.log import Broker, Consumer, Producer, apply
from penstock.pipeline import Pipeline, Runner, verify
from penstock.testing import Driver, wait_until_caught_up

START = datetime(2026, 1, 1, tzinfo=UTC)
FLOWS = ("minutes", "visits", "pairs", "placed", "united")
PATIENCE = 240.0
WAYS = ("sql", "python")


def at(seconds):
    return START + timedelta(seconds=seconds)


def make_views(first, last, random):
    """Out of order by less than the watermark's delay, with robots and pages that nobody knows."""
    for number in range(first, last):
        user = random.choice(["ann", "bob", "eve", "joe", "robot"])
        when = at(number * 4 - random.randrange(9))
        yield View(f"/{random.randrange(4)}", user, number % 50, when, id=f"v{number}")


def make_clicks(first, last, random):
    for number in range(first, last):
        when = at(number * 12 - random.randrange(9))
        yield Click(f"/{random.randrange(4)}", f"ad{number}", when, id=f"c{number}")


def send(settings, first=0, last=150):
    random = Random(first)
    apply([views, clicks, pages], Broker(settings))
    with Producer(settings) as producer:
        producer.send_all(pages, [Page(f"/{each}", f"section {each}", START) for each in range(3)])
        producer.send_all(views, list(make_views(first, last, random)))
        producer.send_all(clicks, list(make_clicks(first // 3, last // 3, random)))


def end_partitions(settings):
    """The watermark is behind the partition that is furthest back: all have to go on."""
    with Producer(settings) as producer:
        for partition in (0, 1):
            producer.send(views, View("/end", f"end{partition}", 0, at(10**6)), partition=partition)
            producer.send(clicks, Click("/end", f"end{partition}", at(10**6)), partition=partition)


def run(pipeline, settings, spark):
    with Runner(pipeline, settings, spark=spark, once=True) as runner:
        assert runner.wait(PATIENCE)


def results(ways, flow, way, settings):
    """What a flow has emitted, without ids, in the order in which it is read."""
    with Consumer(ways.results[flow, way], settings, deduplicate=True) as consumer:
        found = [astuple(replace(each.event, id="")) for each in consumer.records(idle="500 ms")]
    return [each for each in found if "/end" not in each and not str(each[1]).startswith("end")]


def compare(ways, settings, *flows):
    for flow in flows:
        in_sql, in_python = (Counter(results(ways, flow, way, settings)) for way in WAYS)
        assert in_sql == in_python, flow
        assert len(in_sql) > 10, flow


@pytest.fixture
def place(settings, tmp_path):
    """Settings with topics that nobody has used."""
    broker = Broker(settings)
    for topic in broker.topics():
        if "both" in topic:
            broker.delete(topic)
    time.sleep(0.5)
    return replace(settings, data=tmp_path, spark=quick.SPARK)


@pytest.mark.long
def test_a_window_in_sql_emits_what_the_same_window_in_python_does(spark, place):
    ways = BothWays("both-minutes", "minutes")
    send(place)
    end_partitions(place)
    run(ways.pipeline, place, spark)
    compare(ways, place, "minutes")
    for each in verify(ways.pipeline, place, spark):
        assert each.ok, each
        assert each.waiting == (1 if "minutes" in each.flow else 0)  # the page of the end


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_flows_that_are_killed_give_the_results_of_the_log(spark, place):
    """As a stream that is killed twice, and as a replay."""
    driver = Driver(both.pipeline.name, str(Path(module.__file__)), place)
    send(place)
    try:
        for last in (300, 450):
            driver.start()
            await_results(place, driver)
            driver.kill()
            send(place, last - 150, last)
        end_partitions(place)
        driver.start()
        wait_until_caught_up(both.pipeline, place, PATIENCE)
        assert driver.stop() == 0
    finally:
        driver.kill()
    run(both.pipeline, place, spark)  # windows that the watermark closes after the last batch
    compare(both, place, *FLOWS)
    for each in verify(both.pipeline, place, spark):
        assert each.ok, each
    replayed = BothWays("both-replayed", *FLOWS, mode="replay")
    run(replayed.pipeline, place, spark)
    compare(replayed, place, *FLOWS)
    for flow in FLOWS:
        assert Counter(results(replayed, flow, "sql", place)) == Counter(results(both, flow, "sql", place))


def await_results(settings, driver):
    broker, deadline = Broker(settings), time.monotonic() + PATIENCE
    names = [both.results[flow, "sql"].name for flow in ("minutes", "pairs", "placed")]
    while not all(name in broker.topics() and broker.end(name, 0) > 5 for name in names):
        assert time.monotonic() < deadline, driver.last_words()
        time.sleep(0.2)


@pytest.mark.long
@pytest.mark.timeout(500)
@pytest.mark.parametrize("flow", ["minutes", "placed", "united"])
def test_in_real_time_the_last_results_are_the_same(spark, place, flow):
    """A window emits at every event, and which events came before is a matter of chance."""
    ways = BothWays("both-realtime", flow, mode="realtime")
    send(place)
    with Runner(ways.pipeline, place, spark=spark) as runner:
        deadline = time.monotonic() + PATIENCE
        while not is_emitted(ways, place, flow):
            assert time.monotonic() < deadline
            assert not runner.wait(0.5)
    if flow == "minutes":
        in_sql, in_python = ({row[1:3]: row[3:] for row in sorted(each)} for each in of(ways, place, flow))
    else:
        in_sql, in_python = map(Counter, of(ways, place, flow))
    assert in_sql == in_python
    assert len(in_sql) > 10


def of(ways, settings, flow):
    return [results(ways, flow, way, settings) for way in WAYS]


def is_emitted(ways, settings, flow):
    """Whether each event has had its result, in both ways."""
    events = list(make_views(0, 150, Random(0)))
    people = [each for each in events if each.user != "robot"]
    known = [each for each in people if each.page != "/3"]
    due = {"minutes": len(people), "placed": len(known), "united": len(people) + 50}[flow]
    return all(len(each) >= due for each in of(ways, settings, flow))


@pytest.mark.long
@pytest.mark.timeout(500)
def test_no_backlog_makes_an_event_late_for_a_query(spark, place):
    """A partition of a day and one of a few events are read unevenly, a little at a time."""
    pipeline = Pipeline("both-backlog")
    counted = BothWays("both-counted", "minutes").results["minutes", "sql"]
    pipeline.sql(
        "minutes",
        module.MINUTES,
        reads={"views": views},
        writes=counted,
        watermark={"views": "10 seconds"},
        options={"maxOffsetsPerTrigger": "60"},
    )
    apply([views, clicks], Broker(place))
    with Producer(place) as producer:
        for number in range(400):
            producer.send(views, View("/0", "ann", 1, at(number * 200)), partition=0)
        for number in range(20):
            producer.send(views, View("/1", "bob", 1, at(number * 4000)), partition=1)
    end_partitions(place)
    run(pipeline, place, spark)
    with Consumer(counted, place) as consumer:
        rows = [record.event for record in consumer.records(idle="500 ms")]
    assert sum(each.views for each in rows) == 420
    assert [each.ok for each in verify(pipeline, place, spark)] == [True, True]
