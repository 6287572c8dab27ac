"""Redriving dead letters from a real broker: two at once, killed on the way, and repeated."""

import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Barrier, Thread

import pytest
from confluent_kafka import Consumer as PlainConsumer
from confluent_kafka import TopicPartition

from penstock.errors import DataError, FencedError, LogError, PenstockError, TopicError
from penstock.events import Event
from penstock.log import Broker, Producer, Topic, apply, redrive
from penstock.log.topic import DEAD_LETTERS

LETTERS = 120


@dataclass(frozen=True)
class Step(Event):
    number: int
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def topic(settings, unique):
    """A topic with dead letters whose values are their numbers."""
    made = Topic(unique, Step)
    apply([made], Broker(settings))
    Broker(settings).ensure(unique + DEAD_LETTERS, 1, {})
    with Producer(settings) as producer:
        for number in range(LETTERS):
            producer.send_bytes(unique + DEAD_LETTERS, None, str(number).encode())
    return made


def values(settings, name):
    """What those see who read committed messages only."""
    options = {"group.id": "any", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    client = PlainConsumer(settings.client() | options)
    client.assign([TopicPartition(name, 0, 0)])
    found = []
    while messages := client.consume(1000, timeout=1.5):
        found += [int(message.value()) for message in messages if message.error() is None]
    client.close()
    return found


def test_two_redrives_at_once_send_no_letter_twice(settings, topic, monkeypatch):
    """One begins, the other takes over in the middle of its chunk."""
    monkeypatch.setattr(sys.modules["penstock.log.redrive"], "_CHUNK", 50)
    begun, taken_over, done = Barrier(2), Barrier(2), {}

    def slow(value):
        if value == b"60":
            begun.wait(30)
            taken_over.wait(30)

    def first():
        try:
            done["first"] = redrive(topic.name, settings, readable=slow)
        except PenstockError as error:
            done["first"] = error

    thread = Thread(target=first)
    thread.start()
    begun.wait(30)
    second = redrive(topic.name, settings)
    taken_over.wait(30)
    thread.join()
    assert isinstance(done["first"], FencedError), done
    assert second.sent == LETTERS - 50
    assert values(settings, topic.name) == list(range(LETTERS))


def test_two_redrives_started_together_send_no_letter_twice(settings, topic):
    together, ended = Barrier(2), []

    def take_part():
        together.wait(30)
        try:
            ended.append(redrive(topic.name, settings).sent)
        except PenstockError as error:
            ended.append(error)

    threads = [Thread(target=take_part) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(each, int | FencedError | LogError) for each in ended), ended
    redrive(topic.name, settings)  # if both had been fenced by each other
    assert Counter(values(settings, topic.name)) == Counter(range(LETTERS))


DYING = """
    import os, signal, sys
    from penstock.log import redrive
    from penstock.settings import Settings

    def die_at(value):
        if value == sys.argv[3].encode():
            os.kill(os.getpid(), signal.SIGKILL)

    sys.modules["penstock.log.redrive"]._CHUNK = 50
    after = lambda now, total: die_at(str(now).encode()) if sys.argv[4] == "between" else None
    inside = die_at if sys.argv[4] == "inside" else None
    settings = Settings(kafka={"bootstrap.servers": sys.argv[1]})
    redrive(sys.argv[2], settings, readable=inside, progress=after)
"""


@pytest.mark.parametrize(("at", "where", "left"), [("50", "between", 70), ("75", "inside", 70)])
def test_a_redrive_that_is_killed_and_repeated_loses_and_doubles_nothing(settings, topic, at, where, left):
    server = settings.kafka["bootstrap.servers"]
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(DYING), server, topic.name, at, where])
    assert killed.returncode == -9
    assert redrive(topic.name, settings).sent == left
    assert values(settings, topic.name) == list(range(LETTERS))


def test_an_outage_while_letters_are_judged_moves_nothing(settings, topic):
    def judged(value):
        if value == b"3":
            raise LogError("no answer")
        raise DataError("still malformed")

    with pytest.raises(LogError, match="no answer"):
        redrive(topic.name, settings, readable=judged)
    assert values(settings, topic.name + DEAD_LETTERS) == list(range(LETTERS))
    assert redrive(topic.name, settings).sent == LETTERS


def test_letters_of_a_topic_that_was_made_again_are_not_skipped_in_silence(settings, topic):
    redrive(topic.name, settings)
    broker, source = Broker(settings), topic.name + DEAD_LETTERS
    group = f"penstock.replay.{topic.name}"
    client = PlainConsumer(settings.client() | {"group.id": group})
    client.commit(offsets=[TopicPartition(source, 0, 5, "penstock.topic-id=" + "x" * 22)], asynchronous=False)
    client.close()
    with pytest.raises(TopicError, match="made again"):
        redrive(topic.name, settings)
    assert broker.topic_ids([source])[source]
