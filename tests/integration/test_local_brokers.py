"""Three real brokers on this machine: one is killed and nothing is lost; all are, and all is there again."""

import os
import signal
import threading
import time

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata
from typer import Typer
from typer.testing import CliRunner

from penstock.cli import local as commands
from penstock.errors import SettingsError
from penstock.local import Platform
from penstock.log import Broker
from penstock.settings import Settings


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    """Three brokers of this file's own: its tests kill them."""
    made = Platform(tmp_path_factory.mktemp("brokers") / "data", services=("kafka",), brokers=3)
    yield made
    made.down()


def pids(platform):
    return {one.name: one.pid for one in platform.status()}


def kill(platform, *names):
    for name in names:
        os.kill(pids(platform)[name], signal.SIGKILL)


def make_topic(settings, topic):
    admin = AdminClient(settings.client())
    admin.create_topics([NewTopic(topic, 1)])[topic].result(60)
    until(lambda: len(partition(settings, topic).isrs) == 3)


def partition(settings, topic):
    """The partition as one of the brokers knows it; of a new topic it may know nothing yet."""
    found = AdminClient(settings.client()).list_topics(topic, timeout=20).topics[topic].partitions
    return found.get(0) or PartitionMetadata()


def until(reached, seconds=90):
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def stored(settings, topic):
    """All values of the topic, read back."""
    consumer = Consumer(settings.client() | {"group.id": "none", "isolation.level": "read_committed"})
    place = TopicPartition(topic, 0, 0)
    end = Broker(settings).committed_end(topic)[0]
    consumer.assign([place])
    found, deadline = [], time.monotonic() + 60
    while consumer.position([place])[0].offset < end:
        assert time.monotonic() < deadline
        found += [message.value() for message in consumer.consume(1000, timeout=2) if not message.error()]
    consumer.close()
    return found


class Sender(threading.Thread):
    """Sends number after number with acks=all, and keeps those that were acknowledged."""

    def __init__(self, settings, topic):
        super().__init__(daemon=True)
        self.topic, self.acknowledged, self.stopped = topic, [], threading.Event()
        own = {"acks": "all", "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        self._producer = Producer(settings.client() | own)

    def run(self):
        number = 0
        while not self.stopped.wait(0.002):
            self._producer.produce(self.topic, str(number).encode(), on_delivery=self._delivered)
            self._producer.poll(0)
            number += 1
        self._producer.flush(60)

    def _delivered(self, error, message):
        if error is None:
            self.acknowledged.append(message.value())


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_killed_leader_loses_nothing_that_was_acknowledged(platform):
    settings = platform.up()
    assert len(settings.kafka["bootstrap.servers"].split(",")) == 3
    assert Settings.load(platform.data.parent, {"PENSTOCK_DATA": str(platform.data)}).kafka == settings.kafka
    make_topic(settings, "kept")
    sender = Sender(settings, "kept")
    sender.start()
    until(lambda: len(sender.acknowledged) > 200)
    before = pids(platform)
    leader = partition(settings, "kept").leader
    kill(platform, f"kafka-{leader}")
    at_kill = len(sender.acknowledged)
    until(lambda: len(sender.acknowledged) > at_kill + 200)
    sender.stopped.set()
    sender.join(90)
    assert partition(settings, "kept").leader != leader
    found = stored(settings, "kept")
    assert set(sender.acknowledged) <= set(found)
    assert len(set(found)) == len(found)  # the producer is idempotent
    assert {one.name: one.state for one in platform.status()}[f"kafka-{leader}"] == "crashed"
    assert platform.up().kafka == settings.kafka
    until(lambda: len(partition(settings, "kept").isrs) == 3)
    after = pids(platform)
    assert {name for name in after if after[name] != before[name]} == {f"kafka-{leader}"}


@pytest.mark.long
def test_memory_is_bounded_and_all_listen_on_loopback_only(platform):
    platform.up()
    for pid in pids(platform).values():
        process = psutil.Process(pid)
        assert "-Xmx384m" in process.cmdline()
        listening = [one for one in process.net_connections("tcp") if one.status == "LISTEN"]
        assert {one.laddr.ip.removeprefix("::ffff:") for one in listening} == {"127.0.0.1"}


@pytest.mark.long
@pytest.mark.timeout(400)
def test_all_killed_at_once_come_back_with_everything(platform):
    settings = platform.up()
    make_topic(settings, "all")
    writer = Producer(settings.client() | {"transactional.id": "writer", "log_level": 0})
    writer.init_transactions(60)
    for number in range(20):
        writer.begin_transaction()
        writer.produce("all", str(number).encode())
        writer.commit_transaction(30)
    kill(platform, *pids(platform))
    again = platform.up()
    assert again.kafka == settings.kafka
    assert stored(again, "all") == [str(number).encode() for number in range(20)]
    Producer(again.client() | {"transactional.id": "writer"}).init_transactions(60)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_folder_keeps_the_number(platform):
    settings = platform.up()
    make_topic(settings, "stays")
    app = Typer()
    commands.register(app)
    before = pids(platform)
    assert CliRunner().invoke(app, ["down", "--data", str(platform.data)]).exit_code == 0
    assert not any(psutil.pid_exists(pid) for pid in before.values())
    with pytest.raises(SettingsError, match=r"has the data of 3 broker\(s\), 1 asked for"):
        Platform(platform.data, services=("kafka",), brokers=1).up()
    again = Platform(platform.data, services=("kafka",))
    assert "stays" in AdminClient(again.up().client()).list_topics(timeout=20).topics
    assert sorted(pids(again)) == ["kafka-1", "kafka-2", "kafka-3"]
    logs = CliRunner().invoke(app, ["logs", "kafka-2", "--data", str(platform.data)])
    assert "Kafka Server started" in logs.stdout
    one = Platform(platform.data, services=("kafka",), brokers=1)
    assert one.up(fresh=True).kafka["bootstrap.servers"].count(":") == 1
    assert list(pids(one)) == ["kafka"]
    assert not list(platform.data.glob("kafka-*"))
