"""Several brokers: what each is told of the others, and what one broker alone still is."""

import pytest

from penstock.errors import SettingsError
from penstock.local import Platform
from penstock.local.cluster import Cluster, Member, remembered
from penstock.local.kafka import Kafka


def properties(kafka, port=9092, controller=7001):
    return dict(line.split("=", 1) for line in kafka._properties(port, controller).splitlines())


def test_one_broker_is_as_it_was(tmp_path):
    alone = Kafka(tmp_path)
    assert (alone.name, alone.usual_port, alone.folder) == ("kafka", 9092, tmp_path / "kafka")
    found = properties(alone)
    assert (found["node.id"], found["controller.quorum.voters"]) == ("1", "1@127.0.0.1:7001")
    assert (found["default.replication.factor"], found["min.insync.replicas"]) == ("1", "1")
    assert found["broker.session.timeout.ms"] == "30000"


def test_each_of_three_knows_the_others(tmp_path):
    cluster = Cluster("P", (7001, 7002, 7003))
    third = Kafka(tmp_path, member=Member(3, cluster))
    assert (third.name, third.usual_port) == ("kafka-3", 9094)
    found = properties(third, 9094, third.member.controller)
    assert found["node.id"] == "3"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:7001,2@127.0.0.1:7002,3@127.0.0.1:7003"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:9094,CONTROLLER://127.0.0.1:7003"
    assert (found["default.replication.factor"], found["min.insync.replicas"]) == ("3", "2")
    assert found["offsets.topic.replication.factor"] == "3"


def test_the_number_is_in_the_folder(tmp_path):
    assert remembered(tmp_path) is None
    (tmp_path / "kafka").mkdir()
    assert remembered(tmp_path) == 1
    made = Cluster.make(3)
    made.write(tmp_path)
    assert (Cluster.read(tmp_path), remembered(tmp_path)) == (made, 3)
    assert len(set(made.controllers)) == 3
    names = [one.name for one in Platform(tmp_path, services=("kafka",)).status()]
    assert names == ["kafka-1", "kafka-2", "kafka-3"]


@pytest.mark.parametrize("text", ["", "{", "{}", None])
def test_brokers_are_never_replaced_by_an_empty_one(tmp_path, text):
    (tmp_path / "kafka-1").mkdir()
    if text is not None:
        (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(SettingsError, match="can't be read"):
        remembered(tmp_path)
    with pytest.raises(SettingsError, match="can't be read"):
        Platform(tmp_path, services=("kafka",)).status()


def test_two_brokers_are_refused(tmp_path):
    with pytest.raises(SettingsError, match="brokers is 2, expected 1 or 3"):
        Platform(tmp_path, brokers=2)
