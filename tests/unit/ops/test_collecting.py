"""A look at a system of which nothing is known yet, and looks after a broker that refused one."""

import pytest

from penstock.errors import AuthenticationError
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


def test_a_client_that_was_refused_is_replaced_and_one_that_answers_stays(clients, tmp_path):
    with collecting.collecting(Settings(data=tmp_path)) as collector:
        assert collector.look().unanswered == ("topics: the broker does not let user 'ann' in",)
        assert [collector.look().unanswered for _ in range(3)] == [(), (), ()]
    assert clients == ["client 0", "client 1"]
