"""The registry's topic, on a client of a test: a reader that ends is known to have failed."""

import threading

import pytest

from penstock.errors import AuthenticationError
from penstock.registry import Registry, topic
from penstock.settings import Settings


class Broker:
    def __init__(self, _):
        pass

    def ensure(self, *_):
        pass

    def end(self, *_):
        return 0


class Cursor:
    """Reads nothing, until it is refused."""

    refused = threading.Event()

    def __init__(self, *_, **more):
        self.position = {0: 0}

    def start(self):
        pass

    def read(self):
        if self.refused.wait(0.01):
            raise AuthenticationError("the broker does not let user 'ann' in")
        return []

    def close(self):
        pass


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(topic, "Broker", Broker)
    monkeypatch.setattr(topic, "Cursor", Cursor)
    Cursor.refused.clear()
    with Registry(Settings(kafka={"bootstrap.servers": "127.0.0.1:1"})) as made:
        yield made


def test_a_registry_whose_reader_has_ended_says_so(registry):
    assert not registry.has_failed
    Cursor.refused.set()
    registry._topic._reader.join(10)
    assert registry.has_failed
