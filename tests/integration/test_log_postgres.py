"""Exactly once from a topic into an application's own PostgreSQL, through kills, rebalances and zombies."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event as Flag
from threading import Thread, current_thread

import confluent_kafka
import psycopg
import pytest
from psycopg import IsolationLevel
from tests.integration.postgres_worker import QUICK, Step, copy

from penstock.errors import ConfigurationError, FencedError, LogError, TopicError, TryAgainError
from penstock.log import (
    Broker,
    Consumer,
    DeadLetter,
    Groups,
    PostgresConsumer,
    Producer,
    Topic,
    apply,
    from_end,
    from_offsets,
)
from penstock.log.cursor import Cursor
from penstock.log.stored_positions import StoredPositions
from penstock.log.topic import DEAD_LETTERS
from penstock.testing import PointListener


@pytest.fixture
def connect(settings):
    """Connect to the database, and let go of it in the end."""
    made = []

    def connected(**how):
        made.append(psycopg.connect(settings.dsn().value, **{"autocommit": True} | how))
        return made[-1]

    yield connected
    for connection in made:
        connection.close()


@pytest.fixture
def topic(settings, unique, connect):
    made = Topic(unique, Step, partitions=3)
    apply([made], Broker(settings))
    connect().execute(f'CREATE TABLE "{unique}" (number bigint)')
    return made


@pytest.fixture
def stored(connect, topic):
    def numbers():
        return Counter(number for (number,) in connect().execute(f'SELECT number FROM "{topic.name}"'))

    return numbers


@pytest.fixture
def consumer(settings, topic, connect):
    """Make a consumer on a connection of its own, which `.connection` is."""
    made = []

    def consuming(connection=None, **how):
        connection = connection or connect()
        options = {"group": topic.name, "kafka": QUICK} | how
        made.append(PostgresConsumer(topic, settings, connection, **options))
        made[-1].connection = connection
        return made[-1]

    yield consuming
    for each in made:
        each.close()


def produce(settings, topic, numbers):
    with Producer(settings) as producer:
        producer.send_all(topic, map(Step, numbers))


def copy_all(consumer, **how):
    copy(consumer, consumer.connection, consumer.topic.name, **{"idle": "2 seconds"} | how)


def positions(connection, group):
    rows = connection.execute(
        "SELECT partition, next_offset FROM penstock.positions WHERE group_name = %s", [group]
    )
    return dict(rows.fetchall())


def test_writes_and_positions_are_one(settings, topic, consumer, stored, connect):
    produce(settings, topic, range(100))
    first = consumer()
    copy_all(first)
    assert stored() == Counter(range(100))
    assert positions(connect(), topic.name) == Broker(settings).committed_end(topic.name)
    first.close()
    assert sum(lag.events for lag in Groups(settings).lag(topic.name)) == 0, "every tool sees the lag"
    Groups(settings).delete(topic.name)
    produce(settings, topic, range(100, 150))
    copy_all(consumer())
    assert stored() == Counter(range(150)), "what Kafka knows of the group does not count"


def test_a_body_that_fails_leaves_nothing_and_is_read_again(settings, topic, consumer, stored):
    produce(settings, topic, range(50))
    reader = consumer()
    for attempt in range(3):
        with pytest.raises(ZeroDivisionError):
            write_each(reader, lambda number, limit=attempt: number > limit and 1 / 0)
    for record in reader:
        reader.connection.execute(f'INSERT INTO "{topic.name}" VALUES (%s)', [record.event.number])
        break
    assert stored() == Counter()
    write_each(reader)
    assert stored() == Counter(range(50))


def write_each(consumer, then=lambda number: None):
    """Write the numbers down one by one, and do something after each."""
    for record in consumer.records(idle="2 seconds"):
        number = record.event.number
        consumer.connection.execute(f'INSERT INTO "{consumer.topic.name}" VALUES (%s)', [number])
        then(number)


@pytest.mark.parametrize("level", [IsolationLevel.SERIALIZABLE, IsolationLevel.READ_COMMITTED])
def test_any_connection_will_do(settings, topic, consumer, stored, connect, level):
    produce(settings, topic, range(30))
    connection = connect(autocommit=False, row_factory=psycopg.rows.dict_row)
    connection.isolation_level = level
    copy_all(consumer(connection))
    assert stored() == Counter(range(30))
    connection.execute("SELECT 1")
    with pytest.raises(ConfigurationError, match="is INTRANS, not IDLE; end the transaction that is open"):
        consumer(connection)
    connection.rollback()


def test_a_transaction_that_has_failed_unnoticed_is_not_taken_for_done(settings, topic, consumer, stored):
    produce(settings, topic, [9])
    reader = consumer()

    def fail(_):
        with pytest.raises(psycopg.Error):
            reader.connection.execute("SELECT 1 / 0")

    with pytest.raises(ConfigurationError, match=r"is INERROR.*with connection.transaction\(\)"):
        write_each(reader, fail)
    assert stored() == Counter()
    copy_all(reader)
    assert stored() == Counter([9])


def test_a_transaction_that_the_body_ends_is_reported(settings, topic, consumer, stored):
    """The position was moved first, so what is committed by the body is committed with it."""
    with Producer(settings) as producer:
        for number in range(10):
            producer.send(topic, Step(number), partition=0)
    reader = consumer()
    with pytest.raises(ConfigurationError, match="is IDLE, not INTRANS; leave its end to the loop"):
        write_each(reader, lambda number: number == 9 and reader.connection.execute("COMMIT"))
    copy_all(reader)
    assert stored() == Counter(range(10))


def test_malformed_messages_are_dead_letters_before_the_position_passes(settings, topic, consumer, stored):
    produce(settings, topic, range(5))
    with Producer(settings) as producer:
        for partition in range(3):
            producer.send_bytes(topic.name, b"k", b"?", partition=partition)
    reader = consumer()
    with pytest.raises(ZeroDivisionError):
        write_each(reader, lambda _: 1 / 0)
    copy_all(reader)
    assert stored() == Counter(range(5))
    assert len(letters(settings, topic)) == 3


def letters(settings, topic):
    """Where the messages stood that are among the dead letters; one may be there twice."""
    with Cursor(topic.name + DEAD_LETTERS, settings) as cursor:
        cursor.start()
        return {DeadLetter.from_message(each).origin for each in cursor.read_to(cursor.ends())}


def test_where_a_group_starts_is_kept(settings, topic, consumer, stored):
    produce(settings, topic, range(10))
    reader = consumer(start=from_end())
    copy_all(reader)
    reader.close()
    produce(settings, topic, range(10, 20))
    copy_all(consumer(start=from_end()))
    assert stored() == Counter(range(10, 20))
    copy_all(consumer(group=f"{topic.name}.b", start=from_offsets({0: 2})))
    assert sum(stored().values()) == 28


def test_a_topic_that_was_made_again_is_refused(settings, topic, consumer, stored, connect):
    produce(settings, topic, range(10))
    first = consumer()
    copy_all(first)
    first.close()
    Broker(settings).delete(topic.name)
    time.sleep(1)
    apply([topic], Broker(settings))
    produce(settings, topic, range(10, 40))
    refused = consumer()
    with pytest.raises(TopicError, match="deleted and made again") as caught:
        copy_all(refused)
    refused.close()
    statement = caught.value.hint.removeprefix("begin anew: ")
    connect().execute(statement)
    copy_all(consumer())
    assert stored() == Counter(range(40))


def test_a_position_that_the_log_no_longer_has_is_an_error(settings, topic, consumer, stored, connect):
    produce(settings, topic, range(30))
    for_one = consumer(start=from_offsets(dict.fromkeys(range(3), 0)))
    copy_all(for_one, size=1, idle="2 seconds")
    for_one.close()
    connect().execute("UPDATE penstock.positions SET next_offset = 1 WHERE group_name = %s", [topic.name])
    broker = Broker(settings)
    places = [confluent_kafka.TopicPartition(topic.name, number, 3) for number in range(3)]
    for future in broker.admin.delete_records(places).values():
        broker.wait(future)
    with pytest.raises(LogError, match=r"no longer is.*SET next_offset = \d+ WHERE .* AND partition = "):
        copy_all(consumer())


def test_who_claims_a_position_waits_for_its_owner_and_shuts_it_out(topic, connect):
    """The rule that all else rests on, at the rows themselves."""
    one, other = (StoredPositions(connect(), topic.name, topic.name, timedelta(seconds=5)) for _ in range(2))
    one.prepare()
    start = [confluent_kafka.TopicPartition(topic.name, number, 0) for number in (1, 0)]
    assert [each.offset for each in one.claim(start, "id")] == [0, 0]
    claimed = []
    claim = Thread(target=lambda: claimed.extend(other.claim(start, "id")))
    with one.moving({0: 10, 1: 11}):
        claim.start()
        time.sleep(0.5)
        assert not claimed
    claim.join()
    assert [each.offset for each in claimed] == [10, 11]
    for ends in ({0: 20}, {0: 20, 1: 20}, {1: 12}):
        with pytest.raises(FencedError, match="nothing was written"), one.moving(ends):
            raise AssertionError("the body is not reached")
    assert one.owned([0, 1]) == {}
    with other.moving({0: 20}):
        pass
    assert other.owned([0, 1]) == {0: 20, 1: 11}


def test_waiting_for_an_owner_is_bounded(topic, connect):
    one, other = (
        StoredPositions(connect(), topic.name, topic.name, timedelta(seconds=0.5)) for _ in range(2)
    )
    one.prepare()
    start = [confluent_kafka.TopicPartition(topic.name, 0, 0)]
    one.claim(start, None)
    with one.moving({0: 10}), pytest.raises(TryAgainError, match="another member has a transaction open"):
        other.claim(start, None)


@pytest.mark.long
def test_two_members_share_and_hand_over(settings, topic, stored, connect):
    joined, seen = Flag(), Counter()

    def member(name):
        connection = connect()
        with PostgresConsumer(
            topic, settings, connection, group=topic.name, kafka=QUICK, on_rebalance=lambda _: joined.set()
        ) as reader:
            for batch in reader.batches(10, "50 ms", idle="5 seconds"):
                numbers = [event.number for event in batch.events]
                connection.execute(f'INSERT INTO "{topic.name}" SELECT unnest(%s::bigint[])', [numbers])
                seen[name] += len(numbers)
                time.sleep(0.02)

    members = [Thread(target=member, args=(name,)) for name in "ab"]
    members[0].start()
    joined.wait(20)
    for number in range(60):
        produce(settings, topic, range(number * 10, number * 10 + 10))
        if number == 10:
            members[1].start()
        time.sleep(0.1)
    for each in members:
        each.join()
    assert stored() == Counter(range(600))
    assert min(seen.values()) > 0


@pytest.mark.long
def test_a_zombie_writes_nothing(settings, topic, consumer, stored, monkeypatch, caplog):
    """It has collected a batch, and is then away for so long that the group goes on without it."""
    produce(settings, topic, range(60))
    away, back = Flag(), Flag()

    def pause(point, _):
        if point == "consumer.postgres.collected" and current_thread() is thread and not away.is_set():
            away.set()
            back.wait(60)

    def zombie():
        reader = consumer()
        with pytest.raises(LogError, match="maximum poll interval"):
            copy_all(reader)
        copy_all(reader, idle="5 seconds")  # and is a member again

    monkeypatch.setattr("penstock.log.postgres_consumer.reach", pause)
    thread = Thread(target=zombie)
    thread.start()
    assert away.wait(30)
    copy_all(consumer(), idle="5 seconds")
    assert stored() == Counter(range(60))
    back.set()
    produce(settings, topic, range(60, 80))
    thread.join()
    copy_all(consumer())
    assert "another member of group" in caplog.text
    assert stored() == Counter(range(80))


def test_a_claim_that_came_too_late_for_the_group_is_undone(settings, topic, consumer, stored, connect):
    """Somebody claims what the group has given to another meanwhile; the group has the last word."""
    produce(settings, topic, range(20))
    reader = consumer()
    copy_all(reader)
    late = StoredPositions(connect(), topic.name, topic.name, timedelta(seconds=5))
    late.claim([confluent_kafka.TopicPartition(topic.name, number, 0) for number in range(3)], None)
    produce(settings, topic, range(20, 60))
    copy_all(reader)
    assert stored() == Counter(range(60))
    with pytest.raises(FencedError), late.moving({0: 1000}):
        pass


def test_who_waits_for_a_hanging_member_goes_on_afterwards(settings, topic, consumer, stored, connect):
    """Each turn of the loop claims again: the application may try as often as it likes."""
    produce(settings, topic, range(20))
    hanging = StoredPositions(connect(), topic.name, topic.name, timedelta(seconds=5))
    reader = consumer(timeout="300 ms", kafka={**QUICK, "max.poll.interval.ms": 60_000})
    hanging.claim([confluent_kafka.TopicPartition(topic.name, number, 0) for number in range(3)], None)
    with suppress(FencedError), hanging.moving({0: 0, 1: 0, 2: 0}):
        for _ in range(2):
            with pytest.raises(TryAgainError, match="another member has a transaction open"):
                copy_all(reader)
        assert stored() == Counter()
    copy_all(reader)
    assert stored() == Counter(range(20))


def test_a_position_that_is_changed_by_hand_counts_at_once(settings, topic, consumer, stored, connect):
    produce(settings, topic, range(30))
    reader = consumer()
    copy_all(reader)
    connect().execute("UPDATE penstock.positions SET next_offset = 0 WHERE group_name = %s", [topic.name])
    produce(settings, topic, range(30, 60))
    copy_all(reader)
    assert stored() == Counter([*range(30), *range(60)])
    connect().execute("DELETE FROM penstock.positions WHERE group_name = %s", [topic.name])
    produce(settings, topic, range(60, 90))
    copy_all(reader)
    assert stored() == Counter([*range(30), *range(60), *range(90)])


@contextmanager
def worker(settings, *arguments, **environment):
    command = [sys.executable, Path(__file__).with_name("postgres_worker.py"), *arguments]
    process = subprocess.Popen(command, env={**os.environ, **settings.environment(), **environment})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


POINTS = ["claimed", "collected", "moved", "half", "written", "committed"]


def test_killed_anywhere_nothing_is_lost_or_doubled(settings, topic, stored, connect):
    produce(settings, topic, range(200))
    with Producer(settings) as producer:
        for number in range(30):
            producer.send_bytes(topic.name, b"k", b"?", partition=number % 3)
    produce(settings, topic, range(200, 400))
    for point in POINTS:
        kill_at(point, settings, topic)
    with worker(settings, topic.name, topic.name, "the-member") as last:
        assert last.wait(60) == 0
    assert stored() == Counter(range(400))
    assert len(letters(settings, topic)) == 30
    assert positions(connect(), topic.name) == Broker(settings).committed_end(topic.name)


def kill_at(point, settings, topic, passes=2):
    """Run a worker until it comes to a point for the second time (it claims but once), and kill it there."""
    reached = Counter()
    held = Flag()

    def decide(seen, _):
        reached[seen.rpartition(".")[2]] += 1
        if reached[point] >= (1 if point == "claimed" else passes):
            held.set()
        return held.is_set()

    with (
        PointListener(decide) as listener,
        worker(settings, topic.name, topic.name, "the-member", **listener.environment) as process,
    ):
        assert held.wait(60), reached
        process.kill()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_members_come_and_go_are_stopped_and_killed(settings, topic, stored):
    chance, members = random.Random(7), []

    def hire():
        members.append(worker(settings, topic.name, topic.name))
        return members[-1].__enter__()

    try:
        alive = [hire() for _ in range(3)]
        for number in range(60):
            produce(settings, topic, range(number * 20, number * 20 + 20))
            time.sleep(0.2)
            if number % 12 == 6:
                alive.pop(chance.randrange(len(alive))).kill()
                alive.append(hire())
            if number % 20 == 10:
                paused = chance.choice(alive)
                paused.send_signal(signal.SIGSTOP)
            if number % 20 == 19:
                paused.send_signal(signal.SIGCONT)
        for each in alive:
            assert each.wait(90) == 0
    finally:
        for each in members:
            each.__exit__(None, None, None)
    assert stored() == Counter(range(1200))
    with Consumer(topic, settings) as consumer:
        assert len(list(consumer.records(idle="1 second"))) == 1200
