"""Queues by pattern and by priority on a real broker: copies that appear once, urgent work first."""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from inlet_readings import messages_of
from routed_worker import LEVELS, Order, route, router, topics

from penstock.errors import ConfigurationError, TopicError
from penstock.log import Broker, PriorityQueue, Producer, apply

SMALL = {"batch.num.messages": 1}  # a producer's batch is handed out as a whole
SCRIPT = Path(__file__).with_name("routed_worker.py")


@pytest.fixture
def made(settings, unique):
    """The topics of a test, made on the broker."""
    found = topics(unique)
    apply(found, Broker(settings))
    return found


def started(what, settings, name):
    command = [sys.executable, SCRIPT, what, settings.kafka["bootstrap.servers"], name]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def orders(count):
    """A third of them refunds, half of them European."""
    return [Order(n, "refund" if n % 3 == 0 else "new", "eu" if n % 2 else "us") for n in range(count)]


def assert_routed(settings, made, count):
    """Each order stands in each of its queues once, and in no other."""
    _, europe, refunds, rest, *_ = made
    numbers = {each.name: _numbers(settings, each) for each in (europe, refunds, rest)}
    assert numbers == {
        europe.name: [order.number for order in orders(count) if order.region == "eu"],
        refunds.name: [order.number for order in orders(count) if order.kind == "refund"],
        rest.name: [order.number for order in orders(count) if (order.kind, order.region) == ("new", "us")],
    }


def _numbers(settings, topic):
    return sorted(topic.codec().decode(each.value()).number for each in messages_of(settings, topic.name))


def test_events_are_copied_to_the_queues_whose_patterns_match(settings, unique, made):
    with Producer(settings) as producer:
        for order in orders(30):
            router(unique).send(producer, order)
    assert_routed(settings, made, 30)


@pytest.mark.long
def test_a_router_that_is_killed_routes_every_event_once(settings, unique, made):
    with Producer(settings) as producer:
        producer.send_all(made[0], orders(5000))
    for batches in (7, 11):
        process = started("route", settings, unique)
        process.stdout.read(batches)
        process.kill()
        process.wait()
    route(settings, unique)
    assert_routed(settings, made, 5000)


@pytest.fixture
def opened(settings, unique, made):
    """A priority queue whose group has given it all topics, and they are empty."""
    with PriorityQueue(made[4:], settings, group=unique, turn=5) as queue:
        assert list(queue.take(idle="200 ms")) == []
        yield queue


def put(settings, topic, count):
    with Producer(settings, kafka=SMALL) as producer:
        producer.send_all(topic, map(Order, range(count)))


def taken(queue, count):
    """The levels of as many events, in the order they are handed out."""
    found = []
    for lease in queue.take(idle="3 seconds"):
        lease.acknowledge()
        found.append(lease.topic.rpartition(".")[2])
        if len(found) == count:
            return found
    return found


def test_urgent_work_comes_first_and_no_other_starves(settings, made, opened):
    for topic in reversed(made[4:]):
        put(settings, topic, 20)
    levels = taken(opened, 60)
    assert Counter(levels) == dict.fromkeys(LEVELS, 20)
    early, last_urgent = Counter(levels[:20]), len(levels) - levels[::-1].index("urgent")
    assert early["urgent"] >= 12
    assert 1 <= early["normal"] <= 5
    assert 1 <= early["bulk"] <= 5
    assert last_urgent <= 35
    assert Counter(levels[last_urgent:])["normal"] <= 20
    assert levels[-3:] == ["bulk"] * 3


def test_an_urgent_event_overtakes_those_that_wait(settings, made, opened):
    put(settings, made[6], 30)
    assert taken(opened, 5) == ["bulk"] * 5
    put(settings, made[4], 1)
    assert "urgent" in taken(opened, 3)


@pytest.mark.parametrize(("work", "most"), [(0.4, 1), (2.5, 2)])
def test_an_event_that_a_busy_worker_got_is_worked_on_while_its_lease_lasts(
    settings, unique, made, work, most
):
    """Its topic was empty when it was asked, and the client asks on; its turn would come far too late."""
    with PriorityQueue(made[4:], settings, group=unique, turn=100, lease="4 seconds") as queue:
        assert list(queue.take(idle="200 ms")) == []
        put(settings, made[4], 20)
        for number, lease in enumerate(queue.take(idle="5 seconds")):
            if lease.topic == made[6].name:
                break
            lease.acknowledge()
            assert number < 10, "it waits for its turn"
            if number == 0:
                put(settings, made[6], 1)
            time.sleep(work)
        time.sleep(min(work, 1.5))
        lease.acknowledge()  # which raises if the broker has taken it back
        assert lease.deliveries <= most


@pytest.mark.long
def test_what_a_killed_worker_held_is_handed_to_another(settings, unique, made):
    for topic in made[4:]:
        put(settings, topic, 3)
    process = started("work", settings, unique)
    held = int(process.stdout.readline())
    process.kill()
    process.wait()
    with PriorityQueue(made[4:], settings, group=unique) as queue:
        found = []
        for lease in queue.take(idle="12 seconds"):
            lease.acknowledge()
            found.append((lease.topic, lease.event.number, lease.deliveries))
            if len(found) == 9:
                break
    assert {(topic, number) for topic, number, _ in found} == {
        (topic.name, number) for topic in made[4:] for number in range(3)
    }
    assert held in {number for _, number, deliveries in found if deliveries == 2}


@pytest.mark.parametrize("turn", [0, 1])
def test_a_priority_queue_is_checked_when_it_is_made(settings, made, turn):
    with pytest.raises(ConfigurationError, match="turn is"):
        PriorityQueue(made[4:], settings, group="any", turn=turn)
    with pytest.raises(TopicError, match="two or more different ones"):
        PriorityQueue(made[4:5] * 2, settings, group="any")
