"""Consuming from a real broker: positions, groups, commits, rebalances and dead letters."""

import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Thread

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from tests.schema_directory import Outage

from penstock.errors import ConfigurationError, GroupError, LogError, TopicError
from penstock.events import Event
from penstock.log import (
    Broker,
    Consumer,
    DeadLetter,
    ExactlyOnce,
    Groups,
    Producer,
    Topic,
    apply,
    from_beginning,
    from_end,
    from_offsets,
    from_time,
    redrive,
)
from penstock.log.topic import DEAD_LETTERS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUICK = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500}


@dataclass(frozen=True)
class Step(Event):
    key: str
    number: int
    at: datetime = NOW


@pytest.fixture
def topic(settings, unique):
    made = Topic(unique, Step, key="key", partitions=2)
    apply([made], Broker(settings))
    return made


def produce(settings, topic, count, first=0):
    with Producer(settings) as producer:
        producer.send_all(topic, [Step(f"k{number % 10}", number) for number in range(first, first + count)])


def numbers(consumer, **how):
    return sorted(record.event.number for record in consumer.records(idle="1 second", **how))


def test_where_reading_starts(settings, topic):
    produce(settings, topic, 100)
    time.sleep(0.05)
    middle = datetime.now(UTC)
    time.sleep(0.05)
    produce(settings, topic, 50, first=100)
    ends = {number: high for number, (_, high) in Broker(settings).offsets(topic.name).items()}

    def read(start):
        with Consumer(topic, settings, start=start) as consumer:
            return numbers(consumer)

    assert read(from_beginning()) == list(range(150))
    assert read(from_end()) == []
    assert read(from_time(middle)) == list(range(100, 150))
    assert read(from_time(datetime.now(UTC) + timedelta(days=1))) == []
    assert len(read(from_offsets({0: ends[0] - 3}))) == 3 + ends[1]


def test_seek(settings, topic):
    produce(settings, topic, 20)
    with Consumer(topic, settings) as consumer:
        before = numbers(consumer)
        for partition in consumer.assignment:
            consumer.seek(partition, 0)
        assert numbers(consumer) == before == list(range(20))


def test_batches_hold_up_to_size_and_records_know_their_place(settings, topic):
    produce(settings, topic, 250)
    with Consumer(topic, settings) as consumer:
        batches = list(consumer.batches(100, "200 ms", idle="1 second"))
    assert sum(len(batch) for batch in batches) == 250
    assert max(len(batch) for batch in batches) == 100
    places = {(record.partition, record.offset): record.event for batch in batches for record in batch}
    assert len(places) == 250
    record = next(iter(batches[0]))
    assert abs(record.written - datetime.now(UTC)) < timedelta(minutes=1)
    assert record.topic == topic.name


def test_groups_are_independent_and_remember(settings, topic):
    produce(settings, topic, 30)
    for group in ("a", "b"):
        with Consumer(topic, settings, group=f"{topic.name}.{group}") as consumer:
            assert numbers(consumer) == list(range(30))
    produce(settings, topic, 10, first=30)
    with Consumer(topic, settings, group=f"{topic.name}.a") as consumer:
        assert numbers(consumer) == list(range(30, 40))


def crash_in_the_body(consumer, after):
    """Process `after` records, then fail while the next one is being processed; leave without a goodbye."""
    seen = []
    for record in consumer.records(idle="1 second"):
        if len(seen) == after:
            break
        seen.append(record.event.number)
    return seen


def test_at_least_once_repeats_what_was_not_finished(settings, topic):
    produce(settings, topic, 30)
    group = topic.name
    with Consumer(topic, settings, group=group) as consumer:
        first = crash_in_the_body(consumer, 12)
    with Consumer(topic, settings, group=group) as consumer:
        second = numbers(consumer)
    assert sorted(first + second) == list(range(30))


def test_at_most_once_commits_before_processing(settings, topic):
    produce(settings, topic, 30)
    group = topic.name
    with Consumer(topic, settings, group=group, delivery="at-most-once") as consumer:
        first = crash_in_the_body(consumer, 12)
    with Consumer(topic, settings, group=group, delivery="at-most-once") as consumer:
        second = numbers(consumer)
    assert not set(first) & set(second)
    assert len(first + second) < 30


def test_at_most_once_delivers_nothing_twice_after_a_loop_was_left(settings, topic):
    produce(settings, topic, 30)
    with Consumer(topic, settings, group=topic.name, delivery="at-most-once") as consumer:
        delivered = []
        for record in consumer.records(idle="1 second"):
            delivered.append(record.event.number)
            if len(delivered) == 12:
                break
        delivered += numbers(consumer)
    assert len(set(delivered)) == len(delivered)


def test_exactly_once_is_asked_for_by_name(settings, topic):
    with pytest.raises(ConfigurationError, match="ExactlyOnce"):
        Consumer(topic, settings, delivery="exactly-once")


def test_read_process_write_in_one_transaction(settings, topic, unique):
    doubled = Topic(unique + ".doubled", Step, key="key", partitions=2)
    apply([doubled], Broker(settings))
    produce(settings, topic, 100)
    group = topic.name

    def work(fail_at):
        with ExactlyOnce(topic, settings, group=group, member="w") as worker:
            for transaction in worker.transactions(20, "100 ms", idle="1 second"):
                for record in transaction:
                    step = record.event
                    transaction.send(doubled, Step(step.key, step.number * 2, id=step.id))
                    if step.number == fail_at:
                        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        work(fail_at=55)
    with Consumer(doubled, settings) as consumer:
        partly = numbers(consumer)
    assert 110 not in partly, "the failed transaction is not seen"
    assert len(partly) < 100
    work(fail_at=None)
    with Consumer(doubled, settings) as consumer:
        assert numbers(consumer) == [number * 2 for number in range(100)]
    assert sum(lag.events for lag in Groups(settings).lag(group)) == 0


def test_a_transaction_left_by_break_is_read_again(settings, topic):
    produce(settings, topic, 10)
    with ExactlyOnce(topic, settings, group=topic.name) as worker:
        for transaction in worker.transactions(100, "300 ms", idle="1 second"):
            assert len(transaction) > 0
            break
        repeated = worker.transactions(100, "300 ms", idle="1 second")
        again = [event.number for transaction in repeated for event in transaction.events]
    assert sorted(again) == list(range(10))


def test_a_rebalance_shares_the_partitions(settings, topic):
    emitted = []
    with Consumer(topic, settings, group=topic.name, on_rebalance=emitted.append, kafka=QUICK) as one:
        produce(settings, topic, 10)
        assert numbers(one) == list(range(10))
        assert one.assignment == [0, 1]
        with Consumer(topic, settings, group=topic.name, kafka=QUICK) as two:
            for _ in range(40):
                next(one.records(idle="200 ms"), None)
                next(two.records(idle="200 ms"), None)
                if len(one.assignment) == len(two.assignment) == 1:
                    break
            assert sorted(one.assignment + two.assignment) == [0, 1]
            members = Groups(settings).describe(topic.name).members
            assert len(members) == 2
    assert [event.kind for event in emitted][:2] == ["assigned", "revoked"]


def test_a_loop_that_is_left_goes_on_where_it_was_left(settings, topic):
    produce(settings, topic, 30)
    with Consumer(topic, settings, group=topic.name) as consumer:
        first = crash_in_the_body(consumer, 12)
        second = numbers(consumer)
    assert sorted(first + second) == list(range(30)), "by the same consumer, too"
    with Consumer(topic, settings, deduplicate=20) as consumer:
        first = crash_in_the_body(consumer, 12)
        assert sorted(first + numbers(consumer)) == list(range(30))


@pytest.mark.parametrize("how", ["records", "batches", "at-most-once", "transactions"])
def test_an_outage_of_the_registry_loses_no_event_and_makes_no_dead_letter(settings, topic, how):
    directory, named = Outage(), Topic(topic.name, Step, key="key", partitions=2, format="avro")
    with Producer(settings, schemas=directory) as producer:
        producer.send_all(named, [Step(f"k{number}", number) for number in range(20)])
    options = {"group": topic.name, "schemas": directory}

    def read(consumer):
        if how == "transactions":
            found = [each.events for each in consumer.transactions(10, "100 ms", idle="1 second")]
        else:
            found = [each.events for each in consumer.batches(10, "100 ms", idle="1 second")]
        return sorted(event.number for events in found for event in events)

    if how == "transactions":
        consumer = ExactlyOnce(named, settings, **options)
    elif how == "at-most-once":
        consumer = Consumer(named, settings, delivery=how, **options)
    else:
        consumer = Consumer(named, settings, **options)
    with consumer:
        directory.error = LogError("no answer")
        for _ in range(2):
            with pytest.raises(LogError, match="no answer"):
                numbers(consumer) if how == "records" else read(consumer)
        directory.error = None
        assert (numbers(consumer) if how == "records" else read(consumer)) == list(range(20))
    assert topic.name + DEAD_LETTERS not in Broker(settings).topics()


def test_a_group_that_starts_at_the_end_misses_nothing_after_a_crash(settings, topic):
    """Where it starts is written down at once: a crash before the first commit does not move it."""
    produce(settings, topic, 10)
    with Consumer(topic, settings, group=topic.name, start=from_end()) as consumer:
        assert numbers(consumer) == []
    produce(settings, topic, 10, first=10)
    with Consumer(topic, settings, group=topic.name, start=from_end()) as consumer:
        assert numbers(consumer) == list(range(10, 20))


def place(settings, group, positions):
    """Commit positions from outside, as a client that is no member of the group."""
    client = confluent_kafka.Consumer(settings.client() | {"group.id": group})
    client.commit(offsets=positions, asynchronous=False)
    client.close()


def make_again(settings, topic, count):
    broker = Broker(settings)
    broker.delete(topic.name)
    apply([topic], broker)
    produce(settings, topic, count, first=1000)


@pytest.mark.parametrize("kind", [Consumer, ExactlyOnce])
def test_a_topic_that_was_made_again_is_refused_at_the_start(settings, topic, kind):
    produce(settings, topic, 20)
    with kind(topic, settings, group=topic.name) as consumer:
        if kind is Consumer:
            numbers(consumer)
            consumer.commit()
        else:
            list(consumer.transactions(100, "100 ms", idle="1 second"))
        known = consumer.client.committed([TopicPartition(topic.name, number) for number in (0, 1)])
    make_again(settings, topic, 60)
    place(settings, topic.name, known)  # as a broker that was down would have it
    with kind(topic, settings, group=topic.name) as consumer:
        for _ in range(2):
            with pytest.raises(TopicError, match="deleted and made again") as caught:
                numbers(consumer) if kind is Consumer else list(consumer.transactions(idle="1 second"))
    id = Broker(settings).topic_ids([topic.name])[topic.name]
    assert f"now it has the id {id}" in str(caught.value)
    assert f"penstock groups reset {topic.name} {topic.name} --to beginning --yes" in str(caught.value)

    Groups(settings).reset(topic.name, topic.name, from_beginning(), dry_run=False)
    with Consumer(topic, settings, group=topic.name) as consumer:
        assert numbers(consumer) == list(range(1000, 1060))


@pytest.mark.parametrize("group", [True, False])
def test_a_topic_that_is_made_again_while_it_is_read_is_refused(settings, topic, group, monkeypatch):
    monkeypatch.setattr("penstock.log.identity._CHECK_EVERY", 0.2)
    produce(settings, topic, 20)
    with Consumer(topic, settings, group=topic.name if group else None) as consumer:
        assert numbers(consumer) == list(range(20))
        make_again(settings, topic, 80)
        time.sleep(0.3)
        with pytest.raises((TopicError, LogError), match=r"made again|no longer is"):
            numbers(consumer)


def test_positions_without_an_id_are_believed_and_gain_one(settings, topic):
    produce(settings, topic, 20)
    places = [TopicPartition(topic.name, number) for number in (0, 1)]
    place(
        settings,
        topic.name,
        [TopicPartition(topic.name, number, 0, "of another client") for number in (0, 1)],
    )
    with Consumer(topic, settings, group=topic.name) as consumer:
        assert numbers(consumer) == list(range(20))
        consumer.commit()
        id = Broker(settings).topic_ids([topic.name])[topic.name]
        assert {each.metadata for each in consumer.client.committed(places)} == {f"penstock.topic-id={id}"}


def test_a_static_member_comes_back_without_a_rebalance(settings, topic):
    produce(settings, topic, 10)
    group = topic.name
    with Consumer(topic, settings, group=group, member="other", kafka=QUICK) as other:
        numbers(other)
        before = other.rebalances
        with Consumer(topic, settings, group=group, member="other2", kafka=QUICK) as second:
            list(second.records(idle="1 second"))
    found = Groups(settings).describe(group)
    assert {member.static_id for member in found.members} == {"other", "other2"}, "a static member stays"
    assert before == 1


def test_lag_in_events_and_seconds(settings, topic):
    produce(settings, topic, 20)
    group = topic.name
    with Consumer(topic, settings, group=group) as consumer:
        numbers(consumer)
    assert sum(lag.events for lag in Groups(settings).lag(group)) == 0
    produce(settings, topic, 7, first=20)
    later = datetime.now(UTC) + timedelta(seconds=60)
    lags = Groups(settings).lag(group, now=later)
    assert sum(lag.events for lag in lags) == 7
    assert 55 < max(lag.seconds for lag in lags) < 80


def test_nobody_waits_for_events_where_only_a_marker_of_a_transaction_is_left(settings, unique):
    Broker(settings).ensure(unique, 1, {})
    producer = confluent_kafka.Producer({**settings.client(), "transactional.id": unique})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(unique, b"one")
    producer.commit_transaction(20)
    groups = Groups(settings)
    groups.place(unique, {unique: {0: 1}})
    began = time.monotonic()
    (found,) = groups.lag(unique)
    assert (found.events, found.seconds) == (1, 0.0)
    assert time.monotonic() - began < 10


def test_reset_is_shown_first_then_done(settings, topic):
    produce(settings, topic, 20)
    group, groups = topic.name, Groups(settings)
    with Consumer(topic, settings, group=group) as consumer:
        numbers(consumer)
        with pytest.raises(GroupError, match="1 members"):
            groups.reset(group, topic.name, from_beginning())
    moves = groups.reset(group, topic.name, from_beginning())
    assert sum(move.before for move in moves) == 20
    assert [move.after for move in moves] == [0, 0]
    assert sum(lag.events for lag in groups.lag(group)) == 0, "a dry run changes nothing"
    groups.reset(group, topic.name, from_beginning(), dry_run=False)
    assert sum(lag.events for lag in groups.lag(group)) == 20
    groups.reset(group, topic.name, from_offsets({0: 1}), dry_run=False)
    assert group in [state.group for state in groups.all()]
    assert groups.lag(group + ".none") == []
    with pytest.raises(GroupError, match="does not exist"):
        groups.describe(group + ".none")


def test_a_position_that_retention_has_passed_is_an_error_not_a_jump(settings, topic):
    produce(settings, topic, 20)
    group = topic.name
    with Consumer(topic, settings, group=group) as consumer:
        crash_in_the_body(consumer, 1)
    broker = Broker(settings)
    places = [
        TopicPartition(topic.name, number, high) for number, (_, high) in broker.offsets(topic.name).items()
    ]
    for future in broker.admin.delete_records(places).values():
        future.result(10)
    with Consumer(topic, settings, group=group) as consumer, pytest.raises(LogError, match="no longer is"):
        numbers(consumer)


def test_what_can_not_be_decoded_is_a_dead_letter_and_can_be_sent_again(settings, topic):
    produce(settings, topic, 5)
    with Producer(settings) as producer:
        for value in (b"{broken", b'{"id":"x"}', None):
            producer.send_bytes(topic.name, b"k0", value, [("trace", b"t1")])
    produce(settings, topic, 5, first=5)
    with Consumer(topic, settings, group=topic.name) as consumer:
        assert numbers(consumer) == list(range(10))
    assert sum(lag.events for lag in Groups(settings).lag(topic.name)) == 0

    letters = read_dead(settings, topic)
    assert [letter.value for letter in letters] == [b"{broken", b'{"id":"x"}', None]
    assert {letter.topic for letter in letters} == {topic.name}
    assert len({(letter.partition, letter.offset) for letter in letters}) == 3
    assert "missing required field" in letters[1].error
    assert letters[0].headers == (("trace", b"t1"),)

    def readable(value):
        if value != b'{"id":"x"}':
            topic.codec().decode(value)

    done = redrive(topic.name, settings, readable=readable)
    assert (done.sent, done.still_dead) == (1, 2)
    assert [letter.value for letter in read_dead(settings, topic)][3:] == [b"{broken", None]
    done = redrive(topic.name, settings, readable=readable)
    assert (done.sent, done.still_dead) == (0, 2), "a letter is sent again once"


def test_only_a_group_makes_dead_letters_and_a_record_is_sent_again_once(settings, topic, caplog):
    """Who only reads leaves nothing behind; two groups that met the same record make two letters."""
    with Producer(settings) as producer:
        producer.send_bytes(topic.name, b"k0", b"{broken")
    produce(settings, topic, 3)
    for _ in range(2):
        with Consumer(topic, settings) as consumer:
            assert numbers(consumer) == [0, 1, 2]
            assert consumer.malformed == 1
    assert "was left out" in caplog.text
    assert topic.name + DEAD_LETTERS not in Broker(settings).topics()
    for group in ("one", "other"):
        with Consumer(topic, settings, group=f"{topic.name}.{group}") as consumer:
            assert numbers(consumer) == [0, 1, 2]
    assert len(read_dead(settings, topic)) == 2
    done = redrive(topic.name, settings, readable=topic.codec().decode)
    assert (done.sent, done.still_dead, done.repeated) == (0, 1, 1)
    done = redrive(topic.name, settings)
    assert (done.sent, done.still_dead, done.repeated) == (1, 0, 0)


def read_dead(settings, topic):
    raw = Topic(topic.name + DEAD_LETTERS, Step)
    with Consumer(raw, settings) as consumer:
        polls = consumer._polls(100, "100 ms", "1 second")
        return [DeadLetter.from_message(message) for messages in polls for message in messages]


def test_replay_of_a_topic_without_dead_letters_does_nothing(settings, topic):
    assert redrive(topic.name, settings).sent == 0


def test_a_topic_that_does_not_exist_is_reported(settings, unique):
    with pytest.raises(TopicError, match="does not exist"):
        Consumer(Topic(unique, Step), settings)


def test_a_group_in_threads_reads_each_event_once(settings, topic):
    produce(settings, topic, 2000)
    seen = []

    def member():
        with Consumer(topic, settings, group=topic.name, kafka=QUICK) as consumer:
            for batch in consumer.batches(100, "100 ms", idle="3 seconds"):
                seen.extend(event.number for event in batch.events)

    members = [Thread(target=member) for _ in range(3)]
    for thread in members:
        thread.start()
    for thread in members:
        thread.join()
    assert Counter(seen) == Counter(range(2000))
