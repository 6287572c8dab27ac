"""Priority, whatever the work takes: real queues before a simulated broker with a clock of its own."""

from collections import Counter, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace

import pytest

from penstock.events import Event
from penstock.log import PriorityQueue, Topic, priority_queue, queue

LEVELS = ("urgent", "normal", "bulk")
LEASE = 30.0


@dataclass(frozen=True)
class Job(Event):
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)


TOPICS = [Topic(name, Job) for name in LEVELS]
VALUE = TOPICS[0].codec().encode(Job(id="job"))


class Message:
    def __init__(self, topic, offset):
        self.name, self.number = topic, offset
        self.deliveries, self.until = 0, float("-inf")

    def topic(self):
        return self.name

    def offset(self):
        return self.number

    def partition(self):
        return 0

    def value(self):
        return VALUE

    def delivery_count(self):
        return self.deliveries


class World:
    """What the broker has: events that come at their times, and are held until their leases are over."""

    def __init__(self):
        self.now, self.clients, self.coming = 0.0, {}, {}
        self.refused, self.buried = [], []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        for client in self.clients.values():
            client.catch_up()


class Client:
    """As librdkafka's: a poll that found nothing leaves a request, which takes the next event that comes."""

    joined = True

    def __init__(self, world, name):
        self.world, self.coming = world, deque(world.coming.get(name, ()))
        self.name, self.numbers = name, count()
        self.there, self.buffer, self.is_asking = deque(), [], False
        world.clients[name] = self

    def catch_up(self):
        while self.coming and self.coming[0] <= self.world.now:
            self.there.append(Message(self.name, next(self.numbers)))
            self._acquire(self.coming.popleft())
        self._acquire(self.world.now)

    def poll(self, wait):
        self.is_asking = not self.buffer
        self._acquire(self.world.now)
        self.world.sleep(0.003 if self.buffer else wait)
        found, self.buffer = self.buffer, []
        return found

    def accept(self, messages):
        late = [each for each in messages if each.until < self.world.now]
        self.world.refused += late
        for each in messages:
            if each in self.there and each not in late:
                self.there.remove(each)
        return "it was taken back" if late else None

    def release(self, messages):
        for each in messages:
            each.until = float("-inf")

    def close(self):
        pass

    def _acquire(self, moment):
        free = next((each for each in self.there if each.until < moment), None)
        if self.is_asking and free is not None:
            free.deliveries, free.until = free.deliveries + 1, moment + LEASE
            self.buffer, self.is_asking = [free], False


@pytest.fixture
def world(monkeypatch):
    world = World()
    letters = SimpleNamespace(ensure=lambda _: None, send=world.buried.append, flush=lambda: None)
    monkeypatch.setattr(queue, "ShareClient", lambda topic, *_: Client(world, topic))
    monkeypatch.setattr(queue, "Broker", lambda _: SimpleNamespace(topic=str, refuse_unreadable=str))
    monkeypatch.setattr(queue, "DeadLetters", lambda _: letters)
    monkeypatch.setattr(queue, "dead_letter", lambda message, *_: message)
    monkeypatch.setattr(queue, "prepare", lambda *_: None)
    for module in (queue, priority_queue, priority_queue.Lease.__module__):
        monkeypatch.setattr(f"{getattr(module, '__name__', module)}.time", world)
    return world


def done(world, takes, work, **options):
    """The deliveries that each event had when its work was done, by level."""
    found = []
    with PriorityQueue(TOPICS, None, group="any", lease=f"{LEASE} seconds", **options) as queue:
        for lease in queue.take():
            found.append((lease.topic, lease.offset, lease.deliveries))
            world.sleep(work)
            lease.acknowledge()
            if len(found) == takes:
                break
    return found


@pytest.mark.parametrize("work", [0.1, 1, 4, 6, 11, 20, 29])
def test_urgent_work_comes_first_and_no_other_starves_whatever_the_work_takes(world, work):
    world.coming = {name: [0.0] * 300 for name in LEVELS}
    found = Counter(level for level, *_ in done(world, 100, work))
    assert found["urgent"] >= 78
    assert min(found["normal"], found["bulk"]) >= 9


@pytest.mark.parametrize("work", [0.1, 4, 7, 11, 14, 16, 20, 29])
@pytest.mark.parametrize("every", [3, 40, 100])
def test_an_event_that_comes_after_its_topic_was_asked_is_worked_on_in_time(world, work, every):
    """`acknowledge` raises what the broker refuses: nothing is worked on after its lease."""
    world.coming = {"urgent": [0.0] * 400, "bulk": [5.0 + every * number for number in range(40)]}
    found = done(world, 300, work)
    bulk = [deliveries for level, _, deliveries in found if level == "bulk"]
    assert len(bulk) >= min(25, 300 * work / every / 2)
    assert len(bulk) <= 35
    assert max(bulk, default=1) <= 2
    assert work > LEASE / 2 or max(bulk, default=1) == 1, "what can be worked on in time is not given back"
    assert world.buried == world.refused == []


@pytest.mark.parametrize("limit", [1, 2])
def test_waiting_in_a_busy_worker_is_no_reason_to_be_buried(world, limit):
    world.coming = {"urgent": [0.0] * 100, "bulk": [1.0]}
    found = done(world, 20, 12, limit=limit)
    assert [each for each in found if each[0] == "bulk"] == [("bulk", 0, 1)]
    assert world.buried == []
