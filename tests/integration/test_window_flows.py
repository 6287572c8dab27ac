"""Flows over windows, killed with -9 on the way: their last results are those of the log."""

import threading
import time
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from tests import quick
from tests.integration import pages as module
from tests.integration.pages import (
    View,
    archive,
    before,
    history,
    late_views,
    live,
    minutes,
    numbered,
    pages,
    views,
    visits,
)
from tests.reference import windows as reference

from penstock.log import Broker, Consumer, Producer, apply
from penstock.pipeline import Runner, verify
from penstock.testing import Driver, wait_until_caught_up
from penstock.testing.listener import PointListener

END = "/end"
START = datetime(2026, 3, 29, tzinfo=UTC)  # the night in which clocks are set forward
PATIENCE = 150.0
MINUTE = 60


def make_views(count=1500):
    """An hour around midnight, out of order by up to two minutes, with equal times."""
    random = Random(3)
    for number in range(count):
        late = random.choice((0, 0, 0, random.randrange(15), random.randrange(120)))
        at = START + timedelta(seconds=number * 3 // 2 - 900 - late)
        yield View(f"/{random.randrange(6)}", random.random(), at, id=f"v{number}")


def seconds(at):
    return round((at - START) / timedelta(seconds=1))


def read(topic, settings, **options):
    with Consumer(topic, settings, **options) as consumer:
        return [record.event for record in consumer.records(idle="500 ms")]


@pytest.fixture(scope="module")
def log(settings):
    apply([views], Broker(settings))
    return list(make_views())


def send(settings, events):
    with Producer(settings) as producer:
        producer.send_all(views, events)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_windows_that_are_killed_give_the_results_of_the_log(settings, log, tmp_path, spark):
    place = replace(settings, data=tmp_path, spark=quick.SPARK)
    run = Driver(pages.name, str(Path(module.__file__)), place)
    send(settings, log[:600])
    run.start()
    try:
        broker, deadline = Broker(settings), time.monotonic() + PATIENCE
        targets = (minutes.name, live.name)
        while not all(name in broker.topics() and broker.end(name, 0) > 20 for name in targets):
            assert time.monotonic() < deadline, run.last_words()
            time.sleep(0.2)
        run.kill()
        send(settings, log[600:])
        run.start()
        wait_until_caught_up(pages, place, PATIENCE)
        end_both_partitions(settings)
        wait_until_caught_up(pages, place, PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while not is_emitted(settings, log):
            assert time.monotonic() < deadline, run.last_words()
        assert run.stop() == 0
    finally:
        run.kill()
    verifications = {each.flow: each for each in verify(pages, place, spark)}
    for name in ("by_minute", "by_view"):
        assert verifications[name].ok, verifications[name]
        assert verifications[name].windows.taken == len(log) + 2
        assert verifications[name].windows.waiting == 2  # the windows of the last ones are not over
    for name in ("by_visit", "by_number"):
        assert verifications[name].ok, verifications[name]
    check_minutes(settings, log)
    check_before(settings, log)
    check_numbered(settings, log)
    check_visits(settings, log)
    check_live(settings, log)


def end_both_partitions(settings):
    """The watermark is behind the partition that is furthest back: both have to go on.

    A page stands in one partition: events of two have no order among themselves.
    """
    with Producer(settings) as producer:
        for partition in (0, 1):
            last = View(f"{END}{partition}", 0.0, START + timedelta(days=2), id=f"end{partition}")
            producer.send(views, last, partition=partition)


def is_emitted(settings, log):
    """Whether the watermark has passed the log in all flows: it comes after the batches that it is about."""
    visited = any(each.end > START + timedelta(minutes=20) for each in read(visits, settings))
    closed = {(each.page, each.start): each.rows for each in read(minutes, settings)}
    late = len(read(late_views, settings))
    return visited and sum(closed.values()) + late >= len(log) and len(read(before, settings)) >= len(log)


def by_window(log, make):
    """What the reference makes of everything at once."""
    ones, found = defaultdict(make), defaultdict(list)
    for event in log:
        found[event.page].append((seconds(event.at), event))
    emitted = {}
    for page, rows in found.items():
        one = ones[page]
        one.step(rows, -(10**9))
        results, _ = one.step([], 10**9)
        emitted |= {(page, start): (end, held) for start, end, _, held in results}
    return emitted


def check_minutes(settings, log):
    """The last result of each window counts what was not too late; together they are all there is."""
    results, late = read(minutes, settings), read(late_views, settings)
    last = {(each.page, seconds(each.start)): each for each in results if not each.page.startswith(END)}
    left = [event for event in log if event.id not in {event.id for event in late}]
    wanted = by_window(left, lambda: reference.Fixed(MINUTE, MINUTE))
    assert {place: each.rows for place, each in last.items()} == {
        p: len(held) for p, (_, held) in wanted.items()
    }
    assert {place: each.longest for place, each in last.items()} == {
        place: max(event.seconds for _, event in held) for place, (_, held) in wanted.items()
    }
    assert sum(each.rows for each in last.values()) + len(late) == len(log)
    ids = Counter(each.id for each in results)
    assert [id for id, count in ids.items() if count > 1] == []
    emitted = [(each.page, each.start) for each in results if each.kind == "on time"]
    assert len(emitted) == len(set(emitted))


def check_before(settings, log):
    """Each view once, with the rows of its page in the minute before it."""
    found = read(before, settings)
    wanted = Counter(
        (event.id, 1 + sum(0 <= seconds(event.at) - seconds(other.at) < MINUTE for other in log
                           if other.page == event.page and other is not event))
        for event in log
    )  # fmt: skip
    assert Counter((each.id, each.rows) for each in found) == wanted
    assert {each.kind for each in found} == {"on time"}


def check_numbered(settings, log):
    """Each view once, with the number that it has in the log of its page."""
    numbers, wanted = Counter(), Counter()
    for event in log:
        numbers[event.page] += 1
        wanted[event.id, numbers[event.page]] += 1
    found = Counter(
        (each.id, each.number) for each in read(numbered, settings) if not each.page.startswith(END)
    )
    assert found == wanted


class OneLane:
    """Lets one lane of a sink commit, and holds it and the others there."""

    def __init__(self, sink):
        self.committed = threading.Event()
        self._sink, self._sent = sink, 0

    def __call__(self, point, subject):
        if subject != self._sink:
            return False
        if point == "sink.kafka.sent":
            self._sent += 1
            return self._sent > 1
        if point == "sink.kafka.committed":
            self.committed.set()
        return point == "sink.kafka.committed"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_replay_that_is_killed_half_way_is_written_once(settings, log, tmp_path, spark):
    """It is killed when one of its three lanes is written, and goes on with the others."""
    place, lane = replace(settings, data=tmp_path, spark=quick.SPARK), OneLane("pages-archive.by_hour")
    if not read(views, settings):
        send(settings, log)
    with PointListener(lane) as points:
        run = Driver(archive.name, str(Path(module.__file__)), place, environment=points.environment)
        run.start()
        assert lane.committed.wait(PATIENCE), run.last_words()
        run.kill()
    with Runner(archive, place, spark=spark) as runner:
        assert runner.wait(PATIENCE)
    found = Counter((each.page, seconds(each.start), each.rows) for each in read(history, settings))
    wanted = by_window(read(views, settings), lambda: reference.Fixed(60 * MINUTE, 60 * MINUTE))
    assert found == Counter((page, start, len(held)) for (page, start), (_, held) in wanted.items())


def check_visits(settings, log):
    wanted = by_window(log, lambda: reference.Sessions(15))
    found = Counter(
        (each.page, seconds(each.start), seconds(each.end), each.views) for each in read(visits, settings)
    )
    assert found == Counter((page, start, end, len(held)) for (page, start), (end, held) in wanted.items())


def check_live(settings, log):
    wanted = by_window(log, lambda: reference.Fixed(2 * MINUTE, MINUTE))
    most = defaultdict(int)
    for each in read(live, settings):
        if not each.page.startswith(END):
            most[each.page, seconds(each.start)] = max(most[each.page, seconds(each.start)], each.views)
    assert dict(most) == {place: len(held) for place, (_, held) in wanted.items()}
