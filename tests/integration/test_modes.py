"""One keyed rule in real time, as a stream and in replay, killed with -9 on the way: the same results."""

import time
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from tests.integration import swipes as modes
from tests.integration.swipes import Swipe, results, swipes

from penstock.log import Broker, Consumer, Producer, apply
from penstock.pipeline import verify
from penstock.testing import Driver, wait_until_caught_up

MODULE = str(Path(modes.__file__))
START = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = 6_000
PATIENCE = 150.0


def make_swipes(seed):
    """Disorder of up to 30 s, many equal times, and some events that stand twice in the log."""
    random, found = Random(seed), []
    for number in range(EVENTS):
        late = random.choice((0, 0, 0, random.randrange(30_000)))
        at = START + timedelta(milliseconds=number * 60 // 1000 * 1000 - late)
        found.append(Swipe(f"card-{random.randrange(40)}", at, id=f"s{number}"))
        if random.random() < 0.03:
            found.append(found[-1])
    return found


@pytest.fixture(scope="module")
def log(settings):
    """The topic with its first half written, and the second half to be written later."""
    apply([swipes], Broker(settings))
    events = make_swipes(seed=11)
    half = len(events) // 2
    with Producer(settings) as producer:
        producer.send_all(swipes, events[:half])
    return events, events[half:]


def expected(settings):
    """Count plainly, in the order of the log: the small and obviously right way."""
    seen, counts = defaultdict(list), {}
    with Consumer(swipes, settings) as consumer:
        for record in consumer.records(idle="1 second"):
            times = seen[record.event.card]
            times.append(record.event.at)
            first = record.event.at - timedelta(minutes=1)
            counts[f"{record.partition}/{record.offset}"] = sum(
                first < each <= record.event.at for each in times
            )
    return counts


def found(mode, settings, **options):
    """Every answer by its result id."""
    answers = defaultdict(list)
    with Consumer(results(mode), settings, **options) as consumer:
        for record in consumer.records(idle="500 ms"):
            answers[record.event.id].append(record.event.swipes)
    return answers


def driver(mode, settings):
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.sql.shuffle.partitions": "3"}
    return Driver(f"modes-{mode}", MODULE, replace(settings, spark=quick))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("mode", ["stream", "realtime"])
def test_a_flow_that_is_killed_gives_the_results_of_the_log(mode, settings, log, tmp_path, spark):
    events, rest = log
    place = replace(settings, data=tmp_path)
    run = driver(mode, place)
    run.start()
    broker = Broker(settings)
    deadline = time.monotonic() + PATIENCE
    while results(mode).name not in broker.topics() or broker.end(results(mode).name, 0) < 500:
        assert time.monotonic() < deadline, run.log.read_text()
        time.sleep(0.1)
    run.kill()
    with Producer(settings) as producer:
        producer.send_all(swipes, rest)
    rest.clear()
    run.start()
    try:
        wait_until_caught_up(getattr(modes, mode), place, PATIENCE)
        assert run.stop() == 0
    finally:
        run.kill()
    wanted = {id: [answer] for id, answer in expected(settings).items()}
    assert len(wanted) == len(events)
    if (
        mode == "realtime"
    ):  # at least once on the wire: whatever comes again is equal, and readers leave it out
        assert {id: set(each) for id, each in found(mode, settings).items()} == {
            id: set(each) for id, each in wanted.items()
        }
    assert found(mode, settings, deduplicate=mode == "realtime") == wanted
    accounts = verify(getattr(modes, mode), place, spark)
    assert [account for account in accounts if not account.sound] == []


@pytest.mark.timeout(300)
def test_a_replay_gives_the_results_of_the_log(settings, log, tmp_path):
    run = driver("replay", replace(settings, data=tmp_path))
    run.start()
    assert run.wait(PATIENCE) == 0, run.log.read_text()
    assert found("replay", settings) == {id: [answer] for id, answer in expected(settings).items()}
