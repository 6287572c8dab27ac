"""A runner's publisher of statuses: whatever becomes of its topic, it goes on."""

from types import SimpleNamespace

import pytest

from penstock.errors import AuthorizationError, DeliveryError
from penstock.pipeline import status_publisher
from penstock.pipeline.status_publisher import StatusPublisher
from penstock.settings import Settings


class Log:
    """A broker with one topic, and its producers."""

    def __init__(self):
        self.policy, self.made, self.configured, self.records, self.producers = None, 0, 0, 0, []
        self.refuses = False

    def Broker(self, _):
        return SimpleNamespace(ensure=self.ensure, topic_config=self.config, configure=self.configure)

    def Producer(self, _, kafka):
        self.producers.append(kafka)
        client = SimpleNamespace(purge=lambda: None)
        return SimpleNamespace(send_bytes=self.send, flush=lambda _: None, client=client)

    def ensure(self, topic, partitions, config):
        if self.policy is None:
            self.policy, self.made = config["cleanup.policy"], self.made + 1

    def config(self, topic):
        if self.refuses:
            raise AuthorizationError("denied")
        return {"cleanup.policy": self.policy}

    def configure(self, topic, config):
        self.policy, self.configured = config["cleanup.policy"], self.configured + 1

    def send(self, topic, key, value):
        if self.policy is None:
            raise DeliveryError("1 events were not acknowledged: unknown topic", failures=())
        self.records += 1


@pytest.fixture
def log(monkeypatch):
    found = Log()
    monkeypatch.setattr(status_publisher, "Broker", found.Broker)
    monkeypatch.setattr(status_publisher, "Producer", found.Producer)
    return found


@pytest.fixture
def publisher(monkeypatch):
    run = SimpleNamespace(job=SimpleNamespace(identity=SimpleNamespace(sink="shop.bill")), status="running")
    run.restarts = 0
    made = StatusPublisher(Settings(), "shop", [run])
    monkeypatch.setattr(made, "_status", lambda _: SimpleNamespace(to_json=lambda: b"{}"))
    monkeypatch.setattr(status_publisher, "_EVERY", 0.0)
    return made


def test_a_topic_that_was_deleted_is_made_again_with_its_settings(log, publisher):
    publisher._look()
    log.policy = None
    publisher._look()
    publisher._look()
    assert (log.made, log.policy, log.records) == (2, "compact", 2)
    assert len(log.producers) == 2
    assert all(each["allow.auto.create.topics"] is False for each in log.producers)


def test_a_topic_that_a_broker_made_by_itself_is_given_its_settings(log, publisher, monkeypatch):
    publisher._look()
    log.policy = "delete"
    publisher._look()
    assert log.configured == 0, "it is not looked at each time"
    monkeypatch.setattr(status_publisher, "_CHECKED", -1.0)
    publisher._look()
    assert (log.policy, log.configured, len(log.producers)) == ("compact", 1, 1)


def test_who_may_not_see_the_settings_publishes_nevertheless(log, publisher):
    log.refuses = True
    publisher._look()
    assert log.records == 1
