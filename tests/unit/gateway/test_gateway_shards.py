"""The shards of the keys: they start in the end, whatever the broker says at first, and end together."""

import asyncio
import logging
import threading
import time
from datetime import timedelta

import pytest
from tests.gateway import NOWHERE

from penstock.errors import AuthorizationError
from penstock.gateway import shards as module
from penstock.gateway.shards import Shards
from penstock.gateway.submission import Submission

DENIED = AuthorizationError("can't read the settings: DescribeConfigs is not granted")


class Broker:
    """A broker that a topic comes to a while after it was made by another gateway, or that denies things."""

    def __init__(self, *answers, config=None):
        self.answers, self.config, self.configured = list(answers), config, []

    def __call__(self, _):
        return self

    def exists(self, _):
        return self.config is not None

    def ensure(self, *_):
        pass

    def topic_config(self, _):
        if isinstance(self.config, Exception):
            raise self.config
        return self.config

    def configure(self, _, changes):
        raise DENIED

    def partitions(self, names):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return {} if answer is None else dict.fromkeys(names, answer)


class Shard:
    """A shard that takes a while to end."""

    def __init__(self, _, lasts=0.0):
        self.lasts, self.thread = lasts, None

    def submit(self, submission):
        submission.succeed(b"answer", repeated=False)

    def end(self):
        self.thread = threading.Thread(target=time.sleep, args=[self.lasts], daemon=True)
        self.thread.start()

    def join(self, deadline):
        self.thread.join(max(0.0, deadline - time.monotonic()))


@pytest.fixture
def started(monkeypatch):
    """Shards over a broker, with a topic that was looked for often."""

    def start(broker, lasts=0.0):
        monkeypatch.setattr(module, "Broker", broker)
        monkeypatch.setattr(module, "KeyWriter", lambda *_: None)
        monkeypatch.setattr(module, "Shard", lambda writer: Shard(writer, lasts))
        monkeypatch.setattr(module, "_TRY_EVERY", 0.01)
        return Shards(NOWHERE, timedelta(hours=24))

    return start


def reply(shards):
    return asyncio.run(shards.submit(Submission(b"k" * 32, b"", None))).answer


@pytest.mark.parametrize("first", [None, 0, RuntimeError("whatever")])
def test_a_topic_that_is_not_seen_yet_is_looked_for_again(started, first):
    shards = started(Broker(first, first, 4))
    assert reply(shards) == b"answer"
    assert len(shards._shards) == 4
    shards.close()


@pytest.mark.parametrize("config", [DENIED, {"retention.ms": "60000"}])
def test_settings_that_may_not_be_seen_or_changed_are_warned_of(started, caplog, config):
    with caplog.at_level(logging.WARNING):
        shards = started(Broker(4, config=config))
        assert reply(shards) == b"answer"
    assert "1 day" in caplog.text
    assert "DescribeConfigs" in caplog.text
    shards.close()


def test_all_end_at_the_same_time(started, monkeypatch):
    shards = started(Broker(4), lasts=0.3)
    assert reply(shards) == b"answer"
    began = time.monotonic()
    shards.close()
    assert time.monotonic() - began < 0.9
    monkeypatch.setattr(module, "_END_S", 0.1)
    shards = started(Broker(4), lasts=30.0)
    assert reply(shards) == b"answer"
    began = time.monotonic()
    shards.close()
    assert time.monotonic() - began < 0.4
