"""A queue under fire: many workers, poisoned events, workers killed at random; nothing is lost."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from queue_worker import FATAL, LIMIT, Job

from penstock.log import Broker, Consumer, DeadLetter, DeadLetters, Producer, Queue, Topic, apply
from penstock.log.topic import DEAD_LETTERS

EVENTS = 20_000
WORKERS = 20
KILLS = 10
POISONED = {FATAL} | {number for number in range(EVENTS) if number % 20 == 0}
CODEC = Topic("any", Job).codec()
SESSION = 3.0


class Crew:
    """Worker processes that are replaced when they die, and what they reported."""

    def __init__(self, folder, *arguments):
        self._command = [sys.executable, Path(__file__).with_name("queue_worker.py"), *arguments]
        self._folder = folder
        self._files = []
        self.alive = []
        self.deaths = 0
        for _ in range(WORKERS):
            self._hire()

    def _hire(self):
        file = self._folder / f"{len(self._files)}.txt"
        self._files.append(file)
        with file.open("wb") as reported:
            self.alive.append(subprocess.Popen(self._command, stdout=reported))

    def replace_the_dead(self):
        for worker in [each for each in self.alive if each.poll() is not None]:
            assert worker.returncode == -signal.SIGKILL, "a worker ended that nobody killed"
            self.alive.remove(worker)
            self.deaths += 1
            self._hire()

    def stop(self):
        for worker in self.alive:
            worker.terminate()
        for worker in self.alive:
            worker.wait(30)

    def reported(self):
        """Return what was reported, by word: how often for each number; a line cut short does not count."""
        words = {"trying": Counter(), "done": Counter(), "late": Counter()}
        for file in self._files:
            for line in file.read_text().split("\n")[:-1]:
                word, number = line.split()
                words[word][int(number)] += 1
        return words


@pytest.fixture
def jobs(settings, unique):
    topic = Topic(unique, Job, partitions=6)
    broker = Broker(settings)
    apply([topic], broker)
    DeadLetters(settings).ensure(topic.name + DEAD_LETTERS)
    broker.configure_group(topic.name, {"share.session.timeout.ms": str(int(SESSION * 1000))})
    with Producer(settings, kafka={"batch.num.messages": 10}) as producer:
        producer.send_all(topic, map(Job, range(EVENTS)))
    return topic


def read_letters(consumer):
    """Return what has come to the dead letters since, by number."""
    found = consumer.client.consume(1000, timeout=0.1)
    letters = [DeadLetter.from_message(message) for message in found if message.error() is None]
    return {CODEC.decode(letter.value).number: letter for letter in letters}


def fight(crew, consumer, dead):
    """Kill at random while there is work; go on until all is settled or nothing happens any more."""
    chance = random.Random(7)
    settled, quiet_since, kills = 0, time.monotonic(), 0
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        dead |= read_letters(consumer)
        now = len(crew.reported()["done"].keys() | dead.keys())
        if now > settled:
            settled, quiet_since = now, time.monotonic()
        if settled == EVENTS or (settled > EVENTS / 2 and time.monotonic() - quiet_since > SESSION + 2):
            return
        if settled and kills < KILLS:
            chance.choice(crew.alive).kill()
            kills += 1
        time.sleep(chance.uniform(0.2, 0.6))
        crew.replace_the_dead()


@pytest.mark.long
def test_each_event_is_acknowledged_once_or_a_dead_letter_and_none_is_lost(settings, jobs, tmp_path):
    dead = {}
    crew = Crew(tmp_path, settings.kafka["bootstrap.servers"], jobs.name)
    try:
        with Consumer(Topic(jobs.name + DEAD_LETTERS, Job), settings) as consumer:
            fight(crew, consumer, dead)
    finally:
        crew.stop()
    reported = crew.reported()
    done = reported["done"]
    with Queue(jobs, settings, group=jobs.name, limit=LIMIT, lease="20 seconds") as queue:
        assert list(queue.take(idle="1 second")) == [], "nothing is left to be done"

    # The broker confirms an acknowledgement once. A worker that was killed between the confirmation and its
    # own report leaves an event that was tried and is never handed out again: at most one for each death.
    assert max(done.values()) == 1
    unreported = set(range(EVENTS)) - done.keys() - dead.keys()
    assert unreported <= reported["trying"].keys()
    assert len(unreported) <= crew.deaths
    assert crew.deaths >= KILLS / 2, "a worker that was to be killed may have died of an event just before"

    assert dead.keys() >= POISONED
    assert not done.keys() & dead.keys()
    for number, letter in dead.items():
        assert letter.deliveries >= fewest_deliveries(number), letter
    assert len(dead.keys() - POISONED) < EVENTS / 100, "few die because of their neighbours"


def fewest_deliveries(number):
    """How often an event was handed out at least before it became a dead letter."""
    if Job(number).refused:
        return 1
    return LIMIT if Job(number).failing else LIMIT + 1
