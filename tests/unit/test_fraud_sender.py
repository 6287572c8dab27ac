"""Traffic is sent at its rate while something is waited for, and not for ever."""

import pytest

from penstock.apps.fraud import sender
from penstock.apps.fraud.sender import Sender
from penstock.apps.fraud.traffic import Traffic
from penstock.errors import InternalError


class Producer:
    def __init__(self):
        self.sent = []

    def send(self, topic, event):
        self.sent.append((topic.name, event))


@pytest.fixture
def sending():
    return Sender(Producer(), Traffic(honest=100, scenarios=10))


def test_it_sends_at_the_rate(sending):
    sending.send_for(0.5, rate=200)
    assert 60 <= len(sending.producer.sent) <= 100
    assert {name for name, _ in sending.producer.sent} == {"fraud.transactions"}


def test_it_ends_when_what_is_waited_for_is_there(sending):
    sending.send_until(lambda: len(sending.producer.sent) >= 5, 500, "five of them")
    assert 5 <= len(sending.producer.sent) < 500


def test_what_does_not_come_is_an_error(sending, monkeypatch):
    monkeypatch.setattr(sender, "PATIENCE", 0.1)
    with pytest.raises(InternalError, match="the moon did not come within"):
        sending.send_until(lambda: False, 10, "the moon")
