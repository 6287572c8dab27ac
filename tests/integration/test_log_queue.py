"""Queues on a real broker: leases, redelivery, the delivery limit and dead letters."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Thread, Timer

import pytest
from tests.schema_directory import Outage

from penstock.errors import ConfigurationError, GroupError, LeaseError, LogError, TopicError
from penstock.events import Event
from penstock.log import Broker, Consumer, DeadLetter, Producer, Queue, Table, Topic, apply
from penstock.log.topic import DEAD_LETTERS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SMALL = {"batch.num.messages": 1}  # a producer's batch is handed out as a whole


@dataclass(frozen=True)
class Job(Event):
    number: int
    at: datetime = NOW


@pytest.fixture
def jobs(settings, unique):
    made = Topic(unique, Job, partitions=2)
    apply([made], Broker(settings))
    return made


@pytest.fixture
def opened(settings, jobs):
    """Open a queue of the test's topic."""
    return lambda **how: Queue(jobs, settings, **({"group": jobs.name, "at_once": 1} | how))


def put(settings, topic, *numbers):
    with Producer(settings, kafka=SMALL) as producer:
        producer.send_all(topic, [Job(number) for number in numbers])


def letters(settings, topic):
    dead = Topic(topic.name + DEAD_LETTERS, Job)
    ((_, end),) = Broker(settings).offsets(dead.name).values()
    found = []
    with Consumer(dead, settings) as consumer:
        polls = consumer._polls(500, None, "5 seconds")
        while len(found) < end:
            found += [DeadLetter.from_message(message) for message in next(polls)]
    return found


def finish(queue, idle="1 second"):
    """Acknowledge all that comes and return its numbers and deliveries."""
    seen = []
    for lease in queue.take(idle=idle):
        lease.acknowledge()
        seen.append((lease.event.number, lease.deliveries))
    return sorted(seen)


def test_an_acknowledged_event_is_handed_out_once(settings, jobs, opened):
    put(settings, jobs, *range(20))
    with opened() as queue:
        assert finish(queue) == [(number, 1) for number in range(20)]
    with opened() as queue:
        assert finish(queue) == []
    with opened(group=jobs.name + ".other") as queue:
        assert len(finish(queue)) == 20, "groups do not know of each other"


def test_a_lease_knows_its_place(settings, jobs, opened):
    put(settings, jobs, 7)
    with opened() as queue:
        lease = next(queue.take())
        assert (lease.topic, lease.offset, lease.deliveries, lease.key) == (jobs.name, 0, 1, None)
        assert lease.partition in (0, 1)
        assert lease.event.number == 7
        assert "delivery 1, held" in repr(lease)
        lease.acknowledge()
        with pytest.raises(LeaseError, match="acknowledged already"):
            lease.release()


def test_a_released_event_comes_again_at_once(settings, jobs, opened):
    put(settings, jobs, 1)
    with opened() as queue:
        leases = queue.take()
        next(leases).release()
        again = next(leases)
        assert again.deliveries == 2
        again.acknowledge()
        assert finish(queue) == []


def test_what_was_not_decided_on_is_released(settings, jobs, opened):
    put(settings, jobs, 1)
    with opened() as queue:
        leases = queue.take()
        assert [next(leases).deliveries, next(leases).deliveries] == [1, 2]
    with opened() as queue:
        assert finish(queue) == [(1, 3)], "leaving the queue released it too"


def test_an_error_in_the_work_releases_what_is_held(settings, jobs, opened):
    with Producer(settings) as producer:
        producer.send_all(jobs, [Job(number) for number in range(10)])

    def work(queue):
        for lease in queue.take():
            raise RuntimeError(f"planted {lease.deliveries}")

    with pytest.raises(RuntimeError, match="planted 1"), opened() as queue:
        work(queue)
    began = time.monotonic()
    with opened() as queue:
        assert sorted(number for number, _ in finish(queue)) == list(range(10))
    assert time.monotonic() - began < 20, "nobody waited for a lease to run out"


def test_a_rejected_event_is_a_dead_letter_with_its_cause_and_count(settings, jobs, opened):
    put(settings, jobs, 1, 2)
    with opened() as queue:
        for lease in queue.take(idle="1 second"):
            if lease.deliveries == 1:
                lease.release()
            elif lease.event.number == 1:
                lease.reject("no such picture")
            else:
                lease.acknowledge()
    with opened() as queue:
        assert finish(queue) == []
    (letter,) = letters(settings, jobs)
    assert (letter.error, letter.deliveries) == ("no such picture", 2)
    assert b'"number":1' in letter.value


def test_the_last_delivery_of_the_limit_ends_in_the_dead_letters(settings, jobs, opened):
    put(settings, jobs, 1, 2)
    seen = Counter()
    with opened(limit=3) as queue:
        for lease in queue.take(idle="1 second"):
            seen[lease.event.number] += 1
            if lease.event.number == 2:
                lease.release("busy")
    assert seen == {1: 3, 2: 3}
    found = {letter.error: letter.deliveries for letter in letters(settings, jobs)}
    assert found == {
        "delivered 3 times, the limit is 3: busy": 3,
        "delivered 3 times, the limit is 3: it was not decided on": 3,
    }


def test_what_can_not_be_decoded_is_a_dead_letter_at_once(settings, jobs, opened):
    put(settings, jobs, 1)
    with Producer(settings) as producer:
        for value in (b"{broken", None):
            producer.send_bytes(jobs.name, b"k", value, [("trace", b"t1")])
    with opened() as queue:
        assert finish(queue) == [(1, 1)]
    found = letters(settings, jobs)
    assert {letter.value for letter in found} == {b"{broken", None}
    assert {letter.deliveries for letter in found} == {1}
    assert found[0].headers == (("trace", b"t1"),)


@pytest.fixture
def named(settings, jobs):
    """A directory of schemas that can be out of reach, and the topic's events by their schemas in it."""
    directory, topic = Outage(), Topic(jobs.name, Job, format="avro")
    with Producer(settings, schemas=directory) as producer:
        producer.send(topic, Job(1))
    directory.error = LogError("no answer")
    return directory, topic


def test_an_outage_of_the_registry_is_sat_out(settings, named):
    directory, topic = named
    Timer(1.0, lambda: setattr(directory, "error", None)).start()
    with Queue(topic, settings, group=topic.name, schemas=directory) as queue:
        assert finish(queue) == [(1, 1)]
    assert letters(settings, topic) == []


def test_an_outage_that_outlasts_a_lease_gives_the_event_back_and_is_raised(settings, named):
    directory, topic = named
    with (
        Queue(topic, settings, group=topic.name, schemas=directory, lease="1 second") as queue,
        pytest.raises(LogError, match="no answer"),
    ):
        finish(queue)
    directory.error = None
    with Queue(topic, settings, group=topic.name, schemas=directory) as queue:
        assert finish(queue) == [(1, 2)]
    assert letters(settings, topic) == []


def test_an_outage_does_not_let_the_broker_drop_an_event_unseen(settings, named):
    directory, topic = named
    for _ in range(3):
        with (
            Queue(topic, settings, group=topic.name, schemas=directory, lease="1 second", limit=2) as queue,
            pytest.raises(LogError, match="no answer"),
        ):
            finish(queue)
    (letter,) = letters(settings, topic)
    assert letter.deliveries == 3
    assert "no answer" in letter.error


def test_a_dead_letter_that_can_not_be_written_loses_nothing(settings, jobs, opened, monkeypatch):
    put(settings, jobs, 1)
    with opened() as queue:
        lease = next(queue.take())
        monkeypatch.setattr(queue._dead, "flush", lambda: (_ for _ in ()).throw(TopicError("planted")))
        with pytest.raises(TopicError, match="planted"):
            lease.reject("no")
        lease.release()  # as in an `except Exception`: it is released already, and that is no error
        assert next(queue.take()).deliveries == 2
    with opened() as queue:
        assert finish(queue) == [(1, 3)]


def test_a_late_acknowledgement_is_reported(settings, jobs, opened):
    put(settings, jobs, 1, 2)
    with opened(lease="1 second") as queue:
        leases = queue.take()
        late = next(leases)
        time.sleep(2.5)
        with pytest.raises(LeaseError, match="acknowledged too late"):
            late.acknowledge()
        assert late.state == "lost"
        late.release()
        with pytest.raises(LeaseError, match="lost already"):
            late.reject("no")
        later = next(leases)
        time.sleep(2.5)
        with pytest.raises(LeaseError, match="rejected too late"):
            later.reject("no")
        assert sorted(number for number, _ in finish(queue)) == [1, 2]
    assert letters(settings, jobs) == []


def test_a_lease_that_is_over_before_its_turn_is_not_worked_on(settings, jobs, opened):
    with Producer(settings) as producer:
        for number in range(3):
            producer.send(jobs, Job(number), partition=0)
    with opened(lease="1 second", limit=5) as queue:
        seen = []
        for lease in queue.take(idle="1 second"):
            if not seen:
                time.sleep(1.5)
                with pytest.raises(LeaseError):
                    lease.acknowledge()
            else:
                lease.acknowledge()
            seen.append((lease.event.number, lease.deliveries))
    assert seen[0] == (0, 1)
    assert sorted(seen[1:]) == [(0, 2), (1, 2), (2, 2)]


@pytest.fixture
def hearing():
    """SIGINT as at a terminal: a run in the background starts with it ignored, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_heard_while_nothing_comes(opened, hearing):
    with opened() as queue:
        Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            next(queue.take(idle="20 seconds"))


def test_what_can_not_be_is_refused_when_the_queue_is_opened(settings, jobs, opened):
    with pytest.raises(
        GroupError, match="limit of 10 deliveries: the broker drops a message unseen after 10"
    ):
        opened(limit=10)
    with pytest.raises(GroupError, match="at least 1000"):
        opened(lease="10 ms")
    with pytest.raises(ConfigurationError, match="limit is 0"):
        opened(limit=0)
    with pytest.raises(ConfigurationError, match="at_once is 0"):
        opened(at_once=0)
    with pytest.raises(TopicError, match="does not exist"):
        Queue(Topic(jobs.name + ".none", Job), settings, group="g")
    with pytest.raises(TopicError, match="table 't' can't be a queue"):
        Queue(Table("t", Job, key="number"), settings, group="g")


def test_a_group_of_consumers_can_not_be_a_queue(settings, jobs, opened):
    put(settings, jobs, 1)
    with Consumer(jobs, settings, group=jobs.name) as consumer:
        next(consumer.records())
        with opened() as queue, pytest.raises(GroupError, match="give the queue another name"):
            next(queue.take())


def test_the_brokers_limit_is_above_ours_and_never_lowered(settings, jobs, opened):
    def brokers_limit():
        return Broker(settings).group_config(jobs.name)["share.delivery.count.limit"]

    for limit, expected in ((6, "9"), (2, "9"), (9, "10")):
        opened(limit=limit).close()
        assert brokers_limit() == expected


def test_more_workers_than_partitions_all_get_work(settings, jobs, opened):
    seen, queues = Counter(), []

    def worker(name):
        with opened() as queue:
            queues.append(queue)
            while sum(seen.values()) < 400 and time.monotonic() < deadline:
                for lease in queue.take(idle="1 second"):
                    time.sleep(0.05)
                    lease.acknowledge()
                    seen[name] += 1

    deadline = time.monotonic() + 60
    workers = [Thread(target=worker, args=(name,)) for name in range(8)]
    for thread in workers:
        thread.start()
    while len(queues) < 8 or not all(queue._client.joined for queue in queues):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    put(settings, jobs, *range(400))
    for thread in workers:
        thread.join()
    assert sum(seen.values()) == 400
    assert len(seen) == 8, seen


HOLDER = """
import sys, time
from tests.integration.test_log_queue import Job
from penstock.log import Queue, Topic
from penstock.settings import Settings

settings = Settings(kafka={"bootstrap.servers": sys.argv[1]})
queue = Queue(Topic(sys.argv[2], Job), settings, group="holders", lease="60 seconds")
print(next(queue.take()).event.number, flush=True)
time.sleep(100)
"""


def test_the_events_of_a_killed_worker_go_to_another(settings, unique):
    jobs = Topic(unique, Job)
    apply([jobs], Broker(settings))
    put(settings, jobs, 1)
    command = [sys.executable, "-c", HOLDER, settings.kafka["bootstrap.servers"], jobs.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout.readline() == "1\n"
        os.kill(worker.pid, signal.SIGKILL)
    began = time.monotonic()
    with Queue(jobs, settings, group="holders", lease="60 seconds") as queue:
        lease = next(queue.take())
        assert lease.deliveries == 2
        lease.acknowledge()
    assert time.monotonic() - began < 30, "the broken connection ended the lease, not its time"
