"""What the tests of inlets send: numbered readings, and what stands in the log of them."""

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Thread

from penstock.events import Event
from penstock.inlets import Inlet, Messages
from penstock.log import Broker, DeadLetter, Topic, apply
from penstock.log.cursor import Cursor
from penstock.log.topic import DEAD_LETTERS


@dataclass(frozen=True)
class Reading(Event):
    sensor: str
    number: int
    at: datetime


def readings(settings, name):
    """A topic of readings, made on the broker."""
    topic = Topic(name, Reading, key="sensor", partitions=2)
    apply([topic], Broker(settings))
    return topic


@contextmanager
def running(source, topic, settings, **how):
    """An inlet at work in a thread, which is stopped at the end; `ended` has its counts, or its error."""
    messages = Messages(topic, how.pop("line", "{sensor} {number}"), "at")
    with Inlet(source, messages, settings, **how) as inlet:
        ended = []
        thread = Thread(target=_work, args=(inlet, ended))
        thread.start()
        try:
            yield inlet, ended
        finally:
            inlet.stop()
            thread.join(30)


def _work(inlet, ended):
    try:
        ended.append(inlet.run())
    except Exception as error:
        ended.append(error)


def messages_of(settings, name):
    """All messages of a topic as they stand there."""
    with Cursor(name, settings) as cursor:
        cursor.start()
        return list(cursor.read_to(cursor.ends()))


def events_of(settings, topic):
    return [topic.codec().decode(message.value()) for message in messages_of(settings, topic.name)]


def numbers_of(settings, topic):
    return [event.number for event in events_of(settings, topic)]


def letters_of(settings, topic):
    return [DeadLetter.from_message(each) for each in messages_of(settings, topic.name + DEAD_LETTERS)]
