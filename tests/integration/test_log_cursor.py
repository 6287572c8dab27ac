"""The cursor over committed records, on a real broker."""

import time
from datetime import UTC, datetime
from threading import Timer

import confluent_kafka
import pytest

from penstock.errors import LogError, TopicError
from penstock.log import Broker, Producer, from_time
from penstock.log import cursor as module
from penstock.log.cursor import Cursor
from penstock.log.last_record import last_message


@pytest.fixture
def topic(settings, unique):
    Broker(settings).ensure(unique, 3, {})
    return unique


def write(settings, topic, numbers, partitions=3):
    with Producer(settings) as producer:
        for number in numbers:
            producer.send_bytes(topic, None, b"%d" % number, partition=number % partitions)


def values(messages):
    return [int(message.value()) for message in messages]


@pytest.fixture
def transaction(settings, topic):
    """A transaction that is open in partition 0, after some records that count."""
    write(settings, topic, [0, 3, 6])
    client = confluent_kafka.Producer({**settings.client(), "transactional.id": topic})
    client.init_transactions(10)
    client.begin_transaction()
    for number in (9, 12):
        client.produce(topic, b"%d" % number, partition=0)
    client.flush(10)
    return client


def test_it_reads_to_the_end_and_then_on(settings, topic):
    write(settings, topic, range(3000))
    with Cursor(topic, settings) as cursor:
        cursor.start()
        ends = cursor.ends()
        write(settings, topic, range(3000, 3030))
        found = values(cursor.read_to(ends))
        assert sorted(found) == list(range(3000))
        for partition in range(3):
            assert [each for each in found if each % 3 == partition] == list(range(partition, 3000, 3))
        assert cursor.position == ends
        assert sorted(values(cursor.read_to(cursor.ends()))) == list(range(3000, 3030))
        write(settings, topic, [3030])
        assert int(next(cursor.follow()).value()) == 3030


def test_it_starts_where_it_is_asked_to(settings, topic):
    write(settings, topic, range(30))
    time.sleep(0.05)
    middle = datetime.now(UTC)
    write(settings, topic, range(30, 60))
    with Cursor(topic, settings) as cursor:
        cursor.start(from_time(middle))
        assert sorted(values(cursor.read_to(cursor.ends()))) == list(range(30, 60))
        cursor.go_to({1: 5})
        assert values(cursor.read_to({1: 8})) == [16, 19, 22]
        assert values(cursor.read_to({1: 9})) == [25]
        assert values(cursor.read_to({1: 3})) == []
        assert cursor.position == {1: 9}
    with Cursor(topic, settings, [2]) as cursor:
        assert cursor.ends() == {2: 20}
        cursor.start()
        assert values(cursor.read_to(cursor.ends())) == list(range(2, 60, 3))


def test_the_last_record_is_found_wherever_it_is(settings, topic):
    write(settings, topic, range(0, 1500, 3))
    with Cursor(topic, settings) as cursor:
        assert last_message(cursor, 1, 0) is None
        assert int(last_message(cursor, 0, 500).value()) == 1497
        assert int(last_message(cursor, 0, 400).value()) == 1197
        assert int(last_message(cursor, 0, 500, lambda message: int(message.value()) < 10).value()) == 9


def test_an_open_transaction_is_not_read(settings, topic, transaction):
    with Cursor(topic, settings, [0]) as cursor:
        assert cursor.ends() == {0: 3}
        cursor.start()
        assert values(cursor.read_to(cursor.ends())) == [0, 3, 6]
        assert cursor.read() == []
        transaction.commit_transaction(10)
        assert values(cursor.read_to({0: 6})) == [9, 12]


@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_an_end_behind_an_open_transaction_is_waited_for(settings, topic, transaction, outcome):
    end = transaction.commit_transaction if outcome == "commit" else transaction.abort_transaction
    timer = Timer(0.7, end, [10])
    with Cursor(topic, settings, [0]) as cursor:
        cursor.start()
        timer.start()
        found = values(cursor.read_to({0: 6}))
        timer.join()
        assert found == ([0, 3, 6, 9, 12] if outcome == "commit" else [0, 3, 6])
        assert cursor.position == {0: 6}
        assert int(last_message(cursor, 0, 6).value()) == (12 if outcome == "commit" else 6)


def test_waiting_is_bounded(settings, topic, transaction, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.5)
    with Cursor(topic, settings, [0]) as cursor:
        cursor.start()
        with pytest.raises(LogError, match=r"stands at \{0: 3\} of \{0: 5\}.*transaction still open"):
            list(cursor.read_to({0: 5}))
    transaction.abort_transaction(10)


def test_what_is_not_there_is_an_error(settings, topic, unique):
    with pytest.raises(TopicError, match="does not exist"):
        Cursor("nowhere." + unique, settings)
    write(settings, topic, range(30))
    broker = Broker(settings)
    with Cursor(topic, settings) as cursor:
        place = confluent_kafka.TopicPartition(topic, 1, 7)
        broker.wait(broker.admin.delete_records([place])[place])
        assert cursor.beginnings() == {0: 0, 1: 7, 2: 0}
        cursor.go_to({1: 3})
        with pytest.raises(LogError, match=r"\[1\]@3, where the log no longer is"):
            list(cursor.read_to({1: 10}))
        cursor.start()
        assert len(list(cursor.read_to(cursor.ends()))) == 23
