"""Lag, under load and at rest, beside what Kafka's own command line tools say of the same groups."""

import threading
import time
from contextlib import contextmanager

import pytest
from tests.integration.shop import Sale, make_sales
from tests.kafka_tools import consumer_group, share_group

from penstock.log import Broker, Consumer, Producer, Queue, Topic, apply
from penstock.ops.collecting import collecting, look

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
ROUNDS = 3


@pytest.fixture
def sales(settings, unique):
    made = Topic(f"tools.{unique}", Sale, key="customer", partitions=3)
    apply([made], Broker(settings))
    return made


@contextmanager
def working(*works):
    """Threads that work until the block is left: each is given the event that ends it."""
    over = threading.Event()
    threads = [threading.Thread(target=work, args=(over,)) for work in works]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in threads:
            each.join()


def sending(settings, topic):
    def send(over):
        with Producer(settings) as producer:
            while not over.wait(0.02):
                producer.send_all(topic, make_sales(20, seed=5))

    return send


def taking(settings, topic, group):
    """A consumer that commits what it has read, and is slower than the sender."""

    def take(over):
        with Consumer(topic, settings, group=group) as consumer:
            while not over.is_set():
                for _ in consumer.records(idle="1 second"):
                    if over.wait(0.002):
                        break

    return take


def lags(system, group):
    found = next(each for each in system.groups if each.group == group)
    return {(each.topic, each.partition): each for each in found.lags}


def test_under_load_lag_lies_between_what_kafkas_tool_says_before_and_after(settings, sales, unique):
    """Positions and ends only grow: a figure between two of the tool's is right, any other is wrong."""
    with (
        collecting(settings) as collector,
        working(sending(settings, sales), taking(settings, sales, unique)),
    ):
        until_committed(collector, unique, partitions=3)
        for _ in range(ROUNDS):
            before = consumer_group(settings, unique)
            seen = lags(collector.look(), unique)
            after = consumer_group(settings, unique)
            assert set(before) == set(seen) == set(after)
            for place, lag in seen.items():
                assert before[place].position <= lag.position <= after[place].position
                assert before[place].end <= lag.end <= after[place].end
            assert sum(each.end for each in after.values()) > sum(each.end for each in before.values())


def test_at_rest_lag_is_the_very_same(settings, sales, unique):
    with Producer(settings) as producer:
        producer.send_all(sales, make_sales(300, seed=7))
    with Consumer(sales, settings, group=unique) as consumer:
        for number, _ in enumerate(consumer.records(idle="5 seconds"), 1):
            if number == 100:
                break
    listed = consumer_group(settings, unique).items()
    told = {place: (each.position, each.end, each.lag) for place, each in listed}
    found = lags(look(settings), unique).items()
    assert {place: (each.position, each.end, each.events) for place, each in found} == told
    assert sum(lag for _, _, lag in told.values()) > 0


def test_a_queue_at_rest_has_the_lag_that_kafkas_tool_says(settings, sales, unique):
    with Producer(settings) as producer:
        producer.send_all(sales, make_sales(300, seed=7))
    with Queue(sales, settings, group=unique) as queue:
        for number, lease in enumerate(queue.take(), 1):
            lease.acknowledge()
            if number == 120:
                break
    seen = lags(look(settings), unique)
    told = {place: each.lag for place, each in share_group(settings, unique).items()}
    known = {place: lag for place, lag in told.items() if lag is not None}  # it says "-" before it knows
    assert known
    assert set(told) == set(seen)
    assert {place: seen[place].events for place in known} == known
    assert sum(each.events for each in seen.values()) == 180


def until_committed(collector, group, *, partitions):
    deadline = time.monotonic() + 60
    while True:
        found = [each for each in collector.look().groups if each.group == group]
        if found and len(found[0].lags) == partitions:
            return
        assert time.monotonic() < deadline
        time.sleep(0.5)
