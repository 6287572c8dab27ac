"""The system as others see it: figures against a plain client's, flows from another process."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from starlette.testclient import TestClient
from tests.integration.archived import make_archive, make_topic, move
from tests.integration.shop import Sale, make_sales
from tests.unit.ops.test_exposition import parsed

from penstock.identity import Identity
from penstock.log import Broker, Producer, Queue, Topic, apply, redrive
from penstock.log.archive.declarations import Declarations
from penstock.log.dead_letters import DeadLetter, DeadLetters
from penstock.log.last_record import last_record
from penstock.ops.collecting import collecting, look
from penstock.ops.metrics_server import application
from penstock.pipeline import Pipeline, Runner
from penstock.pipeline.flow_status import FlowStatus, flow_statuses
from penstock.pipeline.status_publisher import StatusPublisher
from penstock.settings import Settings

COMMAND = [sys.executable, "-m", "penstock.cli"]


@pytest.fixture(scope="module")
def sales(settings):
    """A topic with three hundred sales in three partitions."""
    topic = Topic("status.sales", Sale, key="customer", partitions=3)
    apply([topic], Broker(settings))
    with Producer(settings) as producer:
        producer.send_all(topic, make_sales(300, seed=3))
    return topic


def member(settings, group, **more):
    return confluent_kafka.Consumer(
        {**settings.client(), "group.id": group, "enable.auto.commit": False, **more}
    )


def commit(settings, group, topic, *positions, partition=0):
    """Commit positions in a partition, one after the other."""
    client = member(settings, group)
    for position in positions:
        client.commit(offsets=[TopicPartition(topic, partition, position)], asynchronous=False)
    client.close()


def group(system, name):
    return next(each for each in system.groups if each.group == name)


def plain_lag(settings, name, topic):
    """The lag of a group as a plain client sees it, as Kafka's own tool computes it."""
    client = member(settings, name)
    found = client.committed([TopicPartition(topic.name, number) for number in range(topic.partitions)])
    ends = {each.partition: client.get_watermark_offsets(each)[1] for each in found}
    client.close()
    return {each.partition: ends[each.partition] - each.offset for each in found if each.offset >= 0}


def test_lag_is_that_of_a_plain_client(settings, sales, unique):
    commit(settings, unique, sales.name, 10)
    commit(settings, unique, sales.name, 3, partition=1)
    system = look(settings)
    found = group(system, unique)
    assert {each.partition: each.events for each in found.lags} == plain_lag(settings, unique, sales)
    assert found.state == "empty"
    assert all(0 < each.seconds < 300 for each in found.lags)
    week = 7 * 86_400
    assert all(week - 300 < each.left < week for each in found.lags)
    topic = next(each for each in system.topics if each.name == sales.name)
    assert topic.events == 300
    assert system.unanswered == ()


def test_commits_of_the_last_minutes_are_read_and_judged(settings, sales, unique):
    end = Broker(settings).end(sales.name, 0)
    commit(settings, f"back-{unique}", sales.name, 5, 20, 7)
    commit(settings, f"done-{unique}", sales.name, 5, 20, end)
    commit(settings, f"busy-{unique}", sales.name, 5, 20)
    with collecting(settings) as collector:
        system = collector.look()
        back = group(system, f"back-{unique}").lags[0]
        assert [(each.position, each.end) for each in back.commits] == [(5, end), (20, end), (7, end)]
        assert (back.judgement, group(system, f"done-{unique}").judgement) == ("rewind", "ok")
        assert group(system, f"busy-{unique}").judgement == "ok"
        commit(settings, f"busy-{unique}", sales.name, 1)
        assert group(collector.look(), f"busy-{unique}").judgement == "rewind"


def test_members_and_what_they_read_are_seen(settings, sales, unique):
    client = member(settings, unique, **{"auto.offset.reset": "earliest"})
    client.subscribe([sales.name])
    first = client.poll(20)
    client.commit(first, asynchronous=False)
    found = group(look(settings), unique)
    client.close()
    assert found.state == "stable"
    assert [each.partitions for each in found.members] == [tuple((sales.name, n) for n in range(3))]
    assert found.lags[0].member == found.members[0].id


def test_markers_of_transactions_are_no_events_that_wait(settings, unique):
    Broker(settings).ensure(unique, 1, {})
    producer = confluent_kafka.Producer({**settings.client(), "transactional.id": unique})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(unique, b"one")
    producer.commit_transaction(20)
    commit(settings, f"at-the-end-{unique}", unique, 1)
    found = group(look(settings), f"at-the-end-{unique}").lags[0]
    assert (found.events, found.seconds, found.judgement, found.left) == (1, 0.0, "ok", None)


def transactional(settings, id, topic, count):
    """A producer with so many records in a transaction that is open."""
    producer = confluent_kafka.Producer({**settings.client(), "transactional.id": id})
    producer.init_transactions(20)
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"x", headers=[("penstock.dead.error", b"undone")])
    producer.flush(20)
    return producer


def test_what_was_aborted_or_is_not_committed_yet_is_no_event_that_waits(settings, unique):
    letters = f"{unique}.dead-letters"
    for topic in (unique, letters):
        Broker(settings).ensure(topic, 1, {})
        transactional(settings, topic, topic, 3).abort_transaction(20)
    commit(settings, f"behind-{unique}", unique, 0)
    found = group(look(settings), f"behind-{unique}").lags[0]
    assert (found.events, found.seconds, found.judgement) == (4, 0.0, "ok")
    assert waiting(settings, unique) == (0, 4)
    still_open = transactional(settings, unique, unique, 1)
    found = group(look(settings), f"behind-{unique}").lags[0]
    assert (found.events, found.seconds, found.judgement) == (5, 0.0, "ok")
    still_open.commit_transaction(20)
    assert group(look(settings), f"behind-{unique}").lags[0].seconds > 0


@pytest.mark.parametrize(
    ("position", "text"),
    [(50, ""), (2, f"penstock.topic-id={'x' * 22}")],
    ids=["beyond the end", "another id"],
)
def test_a_position_in_a_topic_that_had_the_name_before_is_none(settings, unique, position, text):
    Broker(settings).ensure(unique, 1, {})
    with Producer(settings) as producer:
        for _ in range(2):
            producer.send_bytes(unique, None, b"x")
    client = member(settings, f"before-{unique}")
    client.commit(offsets=[TopicPartition(unique, 0, position, text)], asynchronous=False)
    client.close()
    commit(settings, f"done-{unique}", unique, 2)
    system = look(settings)
    found = group(system, f"before-{unique}").lags[0]
    assert (found.position, found.events) == (0, 2)
    assert found.seconds > 0
    assert group(system, f"done-{unique}").lags[0].events == 0


def test_what_kafka_has_no_more_and_an_archive_has_is_not_lost(settings, unique, tmp_path):
    make_topic(settings, unique, partitions=1)
    with Producer(settings) as producer:
        for _ in range(10):
            producer.send_bytes(unique, None, b"x")
    commit(settings, f"late-{unique}", unique, 2)
    make_archive(settings, unique, tmp_path)
    try:
        move(settings, unique)
        assert Broker(settings).offsets(unique) == {0: (10, 10)}
        with Producer(settings) as producer:
            producer.send_bytes(unique, None, b"x")
        found = group(look(settings), f"late-{unique}").lags[0]
        assert (found.events, found.lost, found.left) == (9, 0, None)
    finally:
        Declarations(settings).remove(unique)


def test_events_that_were_deleted_before_they_were_read_are_lost(settings, unique):
    Broker(settings).ensure(unique, 1, {})
    with Producer(settings) as producer:
        for _ in range(10):
            producer.send_bytes(unique, None, b"x")
    commit(settings, f"late-{unique}", unique, 2)
    Broker(settings).delete_records(unique, {0: 5})
    found = group(look(settings), f"late-{unique}").lags[0]
    assert (found.events, found.lost, found.left) == (8, 3, 0.0)


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "other"])
def test_a_queue_is_seen_with_what_it_has_not_done(settings, unique, is_plain):
    sales = topic_with_an_id(settings, unique, is_plain)
    with Producer(settings) as producer:
        producer.send_all(sales, make_sales(300, seed=3))
    taken = 0
    with Queue(sales, settings, group=unique) as queue:
        for lease in queue.take():
            lease.acknowledge()
            taken += 1
            if taken == 120:
                break
    deadline, found = time.monotonic() + 60, None
    while (found is None or found.events != 180) and time.monotonic() < deadline:
        found = next((each for each in look(settings).groups if each.group == unique), None)
    assert found is not None, "the queue is not seen"
    assert (found.kind, found.events, found.judgement) == ("share", 180, "ok")
    assert found.returned > 0, "what was fetched and not decided on came back when the queue was left"
    assert found.seconds > 0


def topic_with_an_id(settings, name, is_plain):
    """A topic whose id is of letters and digits, or has characters that Kafka's tools spell otherwise."""
    broker = Broker(settings)
    for number in range(100):
        topic = Topic(f"queue.{name}.{number}", Sale, key="customer", partitions=3)
        apply([topic], broker)
        if broker.topic_ids([topic.name])[topic.name].isalnum() == is_plain:
            return topic
        broker.delete(topic.name)
    raise AssertionError("every other id is one of these")


def test_dead_letters_are_counted_and_the_newest_says_why(settings, unique):
    Broker(settings).ensure(unique, 1, {})
    letters = DeadLetters(settings)
    for reason in ("amount is missing", "amount is\nno number"):
        letters.send(DeadLetter(unique, 0, 7, reason, datetime.now(UTC), b"k", b"v"))
    letters.flush()
    found = next(each for each in look(settings).dead_letters if each.source == unique)
    assert (found.topic, found.waiting, found.reason) == (f"{unique}.dead-letters", 2, "amount is no number")
    assert time.time() - found.newest < 60
    redrive(unique, settings)
    assert waiting(settings, unique) == (0, 2)
    letters.send(DeadLetter(unique, 0, 8, "amount is missing", datetime.now(UTC), b"k", b"v"))
    letters.flush()
    assert waiting(settings, unique) == (1, 3)


def test_letters_of_a_topic_that_was_made_again_wait_whatever_was_redriven_before(settings, unique):
    name = f"{unique}.dead-letters"
    for topic in (unique, name):
        Broker(settings).ensure(topic, 1, {})
    with Producer(settings) as producer:
        producer.send_bytes(name, None, b"x")
    client = member(settings, f"penstock.replay.{unique}")
    client.commit(offsets=[TopicPartition(name, 0, 1, f"penstock.topic-id={'x' * 22}")], asynchronous=False)
    client.close()
    assert waiting(settings, unique) == (1, 1)


def waiting(settings, source):
    """How many dead letters of a topic wait, and how many are kept."""
    system = look(settings)
    assert system.unanswered == ()
    found = next(each for each in system.dead_letters if each.source == source)
    return found.waiting, found.kept


def test_a_broker_that_does_not_answer_is_said_and_services_are_shown(tmp_path):
    settings = Settings(kafka={"bootstrap.servers": "127.0.0.1:1"}, data=tmp_path)
    (tmp_path / "penstock-data").touch()
    began = time.monotonic()
    system = look(settings)
    assert time.monotonic() - began < 10
    assert [each.state for each in system.services] == ["stopped", "stopped"]
    assert [each.split(":")[0] for each in system.unanswered] == ["topics"]


def copying(name, source, target):
    pipeline = Pipeline(name)

    @pipeline.flow(reads={"rows": source}, writes=target, checkpoint_interval="200 ms")
    def copy(rows):
        return rows

    return pipeline


@pytest.mark.timeout(180)
def test_a_flow_at_work_is_seen_from_another_process(settings, spark, sales, unique, tmp_path):
    place = replace(settings, data=tmp_path)
    pipeline = copying(f"copy-{unique}", sales, Topic(f"copy.{unique}", Sale, key="customer"))
    label = f"copy-{unique}.copy"
    with Runner(pipeline, place, spark=spark):
        found = seen(settings, label)
        assert found["state"] == "running"
        assert (found["rows"], found["latency"]["count"]) == (300, 300)
        assert found["latency_p99"] is None or found["latency_p99"] > 0.05
        assert found["reads"] == [sales.name]
        assert sum(found["parts"].values()) == pytest.approx(found["samples"][-1]["seconds"], abs=0.01)
        with collecting(settings) as collector:
            web = TestClient(application(collector.look), base_url="http://127.0.0.1:9477")
            answer = web.get("/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        points = parsed(answer.text)
        own = (("flow", "copy"), ("pipeline", f"copy-{unique}"))
        assert (points["penstock_flow_rows_total", *own], points["penstock_flow_up", *own]) == (300, 1)
    stopped = next(each for each in flow_statuses(settings) if each.label == label)
    assert (stopped.state, stopped.rows, stopped.latency.count) == ("stopped", 300, 300)
    published = last_record(settings, Identity(label).statuses, 0)
    assert len(published) < 20_000


def seen(settings, label):
    """What the command shows of a flow, as soon as it has read all sales."""
    deadline = time.monotonic() + 90
    while True:
        shown = subprocess.run(
            [*COMMAND, "status", "--json"],
            env={**os.environ, **settings.environment()},
            capture_output=True,
            text=True,
            check=True,
        )
        flows = {each["label"]: each for each in json.loads(shown.stdout)["flows"]}
        if flows.get(label, {}).get("rows") == 300 or time.monotonic() > deadline:
            return flows[label]


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_status_topic_that_was_deleted_is_made_again(settings, unique, monkeypatch):
    monkeypatch.setattr("penstock.pipeline.status_publisher._EVERY", 1.0)
    job = SimpleNamespace(identity=Identity(f"{unique}.copy"))
    publisher = StatusPublisher(settings, unique, [SimpleNamespace(job=job, status="running", restarts=0)])
    word = FlowStatus(f"{unique}.copy", "running", time.time(), time.time(), "here/1")
    monkeypatch.setattr(publisher, "_status", lambda _: word)
    topic, broker = Identity(f"{unique}.copy").statuses, Broker(settings)

    def is_published():
        return word in flow_statuses(settings)

    publisher.start()
    try:
        until(is_published, 30)
        broker.delete(topic)
        until(is_published, 60)
    finally:
        publisher.close()
    assert broker.topic_config(topic)["cleanup.policy"] == "compact"


def test_a_record_that_is_no_status_hides_no_flow(settings, unique):
    good, odd = (Identity(f"{name}{unique}.copy") for name in ("good", "odd"))
    for each in (good, odd):
        Broker(settings).ensure(each.statuses, 1, {"cleanup.policy": "compact"})
    with Producer(settings) as producer:
        word = FlowStatus(good.label, "stopped", 1.0, 0.0, "here/1").to_json()
        producer.send_bytes(good.statuses, good.sink.encode(), word)
        producer.send_bytes(odd.statuses, odd.sink.encode(), b"{")
    system = look(settings)
    assert good.label in [each.label for each in system.flows]
    assert [each for each in system.unanswered if odd.label in each]
    Broker(settings).delete(odd.statuses)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_runner_that_was_killed_is_silent(settings, tmp_path, unique):
    """The shop of the tests in a process of its own, killed while it works."""
    environment = {**os.environ, **settings.environment(), "PENSTOCK_DATA": str(tmp_path)}
    environment |= {"PENSTOCK_NAMESPACE": f"t{unique}", "PENSTOCK_LOG": "json"}
    module = str(Path(__file__).with_name("shop.py"))
    command = [*COMMAND, "run", "shop", "-m", module, "--flow", "bill"]
    runner = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, process_group=0)
    mine = replace(settings, namespace=f"t{unique}")
    try:
        until(lambda: [each.state for each in flow_statuses(mine)] == ["running"], 120)
    finally:
        os.killpg(runner.pid, signal.SIGKILL)
    assert runner.wait(20) == -signal.SIGKILL
    until(lambda: [each.is_silent(time.time()) for each in flow_statuses(mine)] == [True], 60)


def until(holds, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.long
def test_many_topics_take_little_time(settings, unique):
    names = [f"many-{unique}-{number}" for number in range(60)]
    broker = Broker(settings)
    made = broker.admin.create_topics([confluent_kafka.admin.NewTopic(name, 2, 1) for name in names])
    for each in made.values():
        each.result(30)
    with collecting(settings) as collector:
        collector.look()
        began = time.monotonic()
        system = collector.look()
        took = time.monotonic() - began
    removed = broker.admin.delete_topics(names)
    for each in removed.values():
        each.result(30)
    assert {each.name for each in system.topics} >= set(names)
    assert took < 30.0, "a look has a bound"
