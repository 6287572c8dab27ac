"""One keyed rule in real time, as a stream and in replay, killed with -9 on the way: the same results."""

import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Topic, apply

DRIVER = Path(__file__).with_name("mode_driver.py")
START = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = 6_000
PATIENCE = 150.0


@dataclass(frozen=True)
class Swipe(Event):
    card: str
    at: datetime


def swipes(seed):
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
    topic = Topic("modes.swipes", Swipe, key="card", partitions=4)
    apply([topic], Broker(settings))
    events = swipes(seed=11)
    half = len(events) // 2
    with Producer(settings) as producer:
        producer.send_all(topic, events[:half])
    return topic, events, events[half:]


def expected(topic, settings):
    """Count plainly, in the order of the log: the small and obviously right way."""
    seen, counts = defaultdict(list), {}
    with Consumer(topic, settings) as consumer:
        for record in consumer.records(idle="1 second"):
            times = seen[record.event.card]
            times.append(record.event.at)
            first = record.event.at - timedelta(minutes=1)
            counts[f"{record.partition}/{record.offset}"] = sum(
                first < each <= record.event.at for each in times
            )
    return counts


class Run:
    """A driver in a mode and what it has written."""

    def __init__(self, mode, settings, topic, folder):
        self.broker = Broker(settings)
        self.target = f"modes.{mode}"
        self.broker.create(self.target, 1, 1, {})
        servers = settings.kafka["bootstrap.servers"]
        self._command = [
            sys.executable,
            str(DRIVER),
            mode,
            servers,
            topic.name,
            self.target,
            str(folder / mode),
        ]
        self._settings = settings

    def start(self):
        return subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_for(self, count, process):
        deadline = time.monotonic() + PATIENCE
        while self.broker.end(self.target, 0) < count and process.poll() is None:
            assert time.monotonic() < deadline, (
                f"{self.broker.end(self.target, 0)} of {count} results in time"
            )
            time.sleep(0.1)

    def results(self):
        """Every answer by its result id."""
        found = defaultdict(list)
        topic = Topic(self.target, Swipe)
        with Consumer(topic, self._settings) as consumer:
            for messages in consumer._polls(1000, "100 ms", "500 ms"):
                for message in messages:
                    found[message.key().decode()].append(int(message.value()))
        return found


@pytest.mark.timeout(400)
@pytest.mark.parametrize("mode", ["stream", "realtime"])
def test_a_flow_that_is_killed_gives_the_results_of_the_log(mode, settings, log, tmp_path):
    topic, events, rest = log
    run = Run(mode, settings, topic, tmp_path)
    process = run.start()
    run.wait_for(500, process)
    process.kill()
    process.wait()
    if rest:
        with Producer(settings) as producer:
            producer.send_all(topic, rest)
        rest.clear()
    process = run.start()
    try:
        deadline = time.monotonic() + PATIENCE
        while len(found := run.results()) < len(events) and time.monotonic() < deadline:
            time.sleep(1)
    finally:
        process.kill()
        process.wait()
    assert {id: {answer} for id, answer in expected(topic, settings).items()} == {
        id: set(answers) for id, answers in found.items()
    }


@pytest.mark.timeout(300)
def test_a_replay_gives_the_results_of_the_log(settings, log, tmp_path):
    topic, _, _ = log
    run = Run("replay", settings, topic, tmp_path)
    assert run.start().wait(PATIENCE) == 0
    assert {id: [answer] for id, answer in expected(topic, settings).items()} == run.results()
