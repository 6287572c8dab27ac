"""Groups in a storm: members join, leave, are paused and killed; nothing is lost, nothing doubled."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import pytest
from tests.integration.storm_worker import BATCH, LIMIT, QUICK, Step

from penstock.log import Broker, Consumer, ExactlyOnce, Groups, Producer, Queue, Topic, apply
from penstock.log.topic import DEAD_LETTERS

MEMBERS = 8


class Storm:
    """Worker processes that come and go at random, and what they reported."""

    def __init__(self, folder, settings, topic, seed):
        self._folder = folder
        self._arguments = [settings.kafka["bootstrap.servers"], topic.name]
        self._chance = random.Random(seed)
        self._files = []
        self._alive = []
        self._leaving = []
        self._paused = []
        self.kills = 0

    def rage(self, seconds, kills):
        """Hire, let go, pause and kill for a while."""
        due = [time.monotonic() + seconds * (each + 1) / (kills + 1) for each in range(kills)]
        end = time.monotonic() + seconds
        for _ in range(3):
            self._hire()
        while time.monotonic() < end:
            time.sleep(self._chance.uniform(0.3, 1.2))
            self._wake()
            if due and self._alive and time.monotonic() > due[0]:
                due.pop(0)
                self._kill()
            elif len(self._alive) < 3 or (len(self._alive) < MEMBERS and self._chance.random() < 0.5):
                self._hire()
            elif self._chance.random() < 0.3:
                self._pause()
            else:
                self._let_go()

    def calm(self):
        """Let everybody go; whoever does not leave by himself is a failure."""
        self._wake(everybody=True)
        while self._alive:
            self._let_go()
        for worker in self._leaving:
            assert worker.wait(60) in (0, -signal.SIGTERM), "it had not begun yet, or left by itself"

    def end(self):
        for worker in [*self._alive, *self._leaving, *(each for _, each in self._paused)]:
            worker.kill()
            worker.wait()

    def reported(self):
        words = {word: Counter() for word in ("given", "trying", "done", "late")}
        for file in self._files:
            for line in file.read_text().split("\n")[:-1]:
                word, number = line.split()
                words[word][int(number)] += 1
        return words

    def _hire(self):
        file = self._folder / f"{len(self._files)}.txt"
        self._files.append(file)
        named = [f"seat-{len(self._files)}"] if self._chance.random() < 0.3 else []
        command = [sys.executable, Path(__file__).with_name("storm_worker.py"), *self._arguments, *named]
        with file.open("wb") as reported:
            self._alive.append(subprocess.Popen(command, stdout=reported))

    def _pick(self):
        return self._alive.pop(self._chance.randrange(len(self._alive)))

    def _kill(self):
        self._pick().kill()
        self.kills += 1

    def _let_go(self):
        self._leaving.append(self._pick())
        self._leaving[-1].terminate()

    def _pause(self):
        """For longer than the session lasts, or shorter."""
        worker = self._pick()
        worker.send_signal(signal.SIGSTOP)
        self._paused.append((time.monotonic() + self._chance.choice((1, 5)), worker))

    def _wake(self, everybody=False):
        for until, worker in list(self._paused):
            if everybody or time.monotonic() >= until:
                worker.send_signal(signal.SIGCONT)
                self._alive.append(worker)
                self._paused.remove((until, worker))


class Source:
    """Writes events steadily until it is stopped."""

    def __init__(self, settings, topic, rate=150):
        self.count = 0
        self._stopped = Flag()
        self._thread = Thread(target=self._produce, args=(settings, topic, rate))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    def _produce(self, settings, topic, rate):
        with Producer(settings, kafka={"batch.num.messages": 10}) as producer:
            while not self._stopped.wait(0.1):
                for _ in range(rate // 10):
                    producer.send(topic, Step(self.count))
                    self.count += 1


@pytest.fixture
def topic(settings, unique):
    made = Topic(unique, Step, partitions=6)
    broker = Broker(settings)
    apply([made, Topic(unique + ".out", Step)], broker)
    broker.configure_group(unique + ".q", {"share.session.timeout.ms": "3000"})
    return made


def numbers(consumer, idle="1 second"):
    return [event.number for batch in consumer.batches(500, "100 ms", idle=idle) for event in batch.events]


def finish(settings, topic):
    """Do what was left to do, and return what was given at most once, and what the queue still had."""
    out = Topic(topic.name + ".out", Step)
    with ExactlyOnce(topic, settings, group=topic.name + ".e", kafka=QUICK) as worker:
        for transaction in worker.transactions(500, "100 ms", idle="4 seconds"):
            for record in transaction:
                transaction.send(out, record.event)
    with Consumer(topic, settings, group=topic.name + ".m", delivery="at-most-once", kafka=QUICK) as consumer:
        given = numbers(consumer, "4 seconds")
    left = []
    with Queue(topic, settings, group=topic.name + ".q", limit=LIMIT, lease="20 seconds") as jobs:
        for lease in jobs.take(idle="3 seconds"):
            left.append(lease.event.number)
            lease.acknowledge()
    return given, left


@pytest.mark.parametrize(
    ("seconds", "kills"),
    [(5, 1), pytest.param(240, 30, marks=[pytest.mark.long, pytest.mark.timeout(600)])],
)
def test_nothing_is_lost_or_doubled_while_members_come_and_go(settings, topic, tmp_path, seconds, kills):
    weather(settings, topic, tmp_path, seconds, kills, seed=seconds)


def weather(settings, topic, folder, seconds, kills, *, seed):
    """Let a storm rage, judge what has come of it, and return how many were killed."""
    storm = Storm(folder, settings, topic, seed)
    try:
        with Source(settings, topic) as source:
            storm.rage(seconds, kills)
        storm.calm()
    finally:
        storm.end()
    given, left = finish(settings, topic)
    reported, everything = storm.reported(), range(source.count)

    with Consumer(Topic(topic.name + ".out", Step), settings) as consumer:
        assert Counter(numbers(consumer)) == Counter(everything), "exactly once"
    assert sum(lag.events for lag in Groups(settings).lag(topic.name + ".e")) == 0

    once = reported["given"] + Counter(given)
    assert max(once.values()) == 1, "at most once"
    assert len(set(everything) - once.keys()) <= storm.kills * BATCH, "only a member that is killed loses"

    done = reported["done"] + Counter(left)
    assert max(done.values()) == 1
    unreported = set(everything) - done.keys()
    assert unreported <= reported["trying"].keys(), "the queue hands out everything"
    assert len(unreported) <= storm.kills
    assert topic.name + DEAD_LETTERS not in Broker(settings).topics() or not dead(settings, topic)
    return storm.kills


def dead(settings, topic):
    with Consumer(Topic(topic.name + DEAD_LETTERS, Step), settings) as consumer:
        return numbers(consumer)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-most-once"])
def test_a_revocation_takes_the_collected_messages_with_it(settings, topic, delivery):
    """One member lingers over a batch; another joins and gets half of the partitions, and what is in them."""
    with Producer(settings) as producer:
        producer.send_all(topic, map(Step, range(120)))
    seen, sizes, joined = [], [], Flag()

    def member(wait, is_first):
        options = {"group": topic.name, "kafka": QUICK, "on_rebalance": lambda _: joined.set()}
        if delivery == "at-most-once":
            with Consumer(topic, settings, delivery=delivery, **options) as consumer:
                for batch in consumer.batches(1000, wait, idle="3 seconds"):
                    seen.extend(event.number for event in batch.events)
                    sizes.append((is_first, len(batch)))
            return
        with ExactlyOnce(topic, settings, **options) as worker:
            for transaction in worker.transactions(1000, wait, idle="3 seconds"):
                for record in transaction:
                    transaction.send(Topic(topic.name + ".out", Step), record.event)
                sizes.append((is_first, len(transaction)))

    first = Thread(target=member, args=("5 seconds", True))
    first.start()
    joined.wait(20)
    second = Thread(target=member, args=("100 ms", False))
    second.start()
    for thread in (first, second):
        thread.join()
    if delivery == "exactly-once":
        with Consumer(Topic(topic.name + ".out", Step), settings) as consumer:
            seen = numbers(consumer)
    assert Counter(seen) == Counter(range(120))
    assert {is_first for is_first, _ in sizes} == {True, False}, "both had a share"
