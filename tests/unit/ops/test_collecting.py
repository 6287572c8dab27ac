"""A look at a system of which nothing is known yet, and looks after a broker that refused one."""

import pytest

from penstock.errors import AuthenticationError, ReplicaError
from penstock.ops import collecting
from penstock.ops.collecting import Collector, look
from penstock.settings import Settings


def test_without_a_broker_the_services_are_shown_as_stopped(tmp_path):
    system = look(Settings(data=tmp_path))
    assert [each.state for each in system.services] == ["stopped", "stopped"]
    assert system.unanswered == ("topics: no Kafka broker is known",)
    assert (system.topics, system.groups, system.flows, system.replicas) == ((), (), (), ())


@pytest.fixture
def clients(monkeypatch):
    """The clients that are made; all but the second one are refused."""
    made = []

    def topics(client, _):
        if client == "client 1":
            return ()
        raise AuthenticationError("the broker does not let user 'ann' in")

    monkeypatch.setattr(collecting, "Broker", lambda _: made.append(f"client {len(made)}") or made[-1])
    monkeypatch.setattr(collecting, "topic_statuses", topics)
    monkeypatch.setattr(Collector, "_of_the_log", lambda *_: {})
    return made


def test_a_database_that_is_away_hides_no_replica_of_another(monkeypatch, clients, tmp_path):
    def statuses(_, name):
        if name == "gone":
            raise ReplicaError("the database can't be reached")
        return [f"copy in {name}"]

    monkeypatch.setattr(collecting, "replica_statuses", statuses)
    known = {
        "gone": {"dsn": "host=a dbname=x"},
        "there": {"dsn": "postgresql://b/y"},
        "web": {"url": "https://c"},
    }
    with collecting.collecting(Settings(data=tmp_path, connections=known)) as collector:
        system = collector.look()
    assert system.replicas == ("copy in there",)
    assert "replicas in gone: the database can't be reached" in system.unanswered


def test_a_client_that_was_refused_is_replaced_and_one_that_answers_stays(clients, tmp_path):
    with collecting.collecting(Settings(data=tmp_path)) as collector:
        assert collector.look().unanswered == ("topics: the broker does not let user 'ann' in",)
        assert [collector.look().unanswered for _ in range(3)] == [(), (), ()]
    assert clients == ["client 0", "client 1"]
