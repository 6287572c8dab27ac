"""One keyed rule in real time, as a stream and in replay, killed with -9 on the way: the same results."""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from tests import quick
from tests.integration import swipes as modes
from tests.integration.swipes import Swipe, results, swipes

from penstock.log import Broker, Consumer, Producer, apply
from penstock.pipeline import Runner
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


def wait_for_results(settings, run):
    """Wait until both flows have written something."""
    broker, deadline = Broker(settings), time.monotonic() + PATIENCE
    names = [results(mode).name for mode in ("stream", "realtime")]
    while not all(name in broker.topics() and broker.end(name, 0) > 500 for name in names):
        assert time.monotonic() < deadline, run.log.read_text()
        time.sleep(0.1)


def penstock(command, *words, settings):
    """Run a command of the command line."""
    line = [sys.executable, "-m", "penstock.cli", command, "modes", *words]
    environment = os.environ | settings.environment()
    return subprocess.run(
        line, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.long
@pytest.mark.timeout(400)
def test_flows_that_are_killed_give_the_results_of_the_log(settings, log, tmp_path):
    events, rest = log
    place = replace(settings, data=tmp_path, spark=quick.SPARK | {"spark.sql.shuffle.partitions": "2"})
    run = Driver("modes", MODULE, place)
    run.start()
    try:
        wait_for_results(settings, run)
        run.kill()
        with Producer(settings) as producer:
            producer.send_all(swipes, rest)
        run.start()
        wait_until_caught_up(modes.modes, place, PATIENCE)
        stopped = penstock("stop", settings=place)
        assert (stopped.returncode, run.wait(10)) == (0, 0), stopped.stdout
    finally:
        run.kill()
    wanted = {id: [answer] for id, answer in expected(settings).items()}
    assert len(wanted) == len(events)
    assert found("stream", settings) == wanted
    # At least once on the wire: whatever comes again is equal, and readers leave it out.
    again = found("realtime", settings)
    assert {id: set(each) for id, each in again.items()} == {id: set(each) for id, each in wanted.items()}
    assert found("realtime", settings, deduplicate=True) == wanted
    verified = penstock("verify", "-m", MODULE, "--json", settings=place)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    verifications = {each["flow"]: each for each in json.loads(verified.stdout)}
    assert verifications["stream"]["found"] == verifications["stream"]["expected"] == len(wanted)
    assert penstock("stop", settings=place).returncode == 3


@pytest.mark.timeout(300)
def test_a_replay_gives_the_results_of_the_log(settings, log, tmp_path, spark):
    with Runner(modes.replay, replace(settings, data=tmp_path), spark=spark) as runner:
        assert runner.wait(PATIENCE)
    assert found("replay", settings) == {id: [answer] for id, answer in expected(settings).items()}
