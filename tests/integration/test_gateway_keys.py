"""The keys of gateways whose topic, disk or version is not what it was, with a real broker."""

import sqlite3
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256

import pytest

from penstock.gateway.key_index import KeyIndex
from penstock.gateway.key_writer import KeyWriter
from penstock.gateway.refusal import Refusal
from penstock.gateway.shard import Shard
from penstock.gateway.submission import Outgoing, Prepared, Submission, key_digest
from penstock.log import Broker

KEPT = {"retention.ms": "86400000"}
UNFIT = Refusal(422, "data.event", "does not fit")


@pytest.fixture
def broker(settings):
    return Broker(settings)


@pytest.fixture
def topic(broker, unique):
    """A topic for the keys, and one for the events."""
    broker.ensure(f"{unique}.keys", 1, KEPT)
    broker.ensure(f"{unique}.events", 1, {})
    return f"{unique}.keys"


@contextmanager
def gateways(settings, topic, count):
    """Shards of so many gateways, of the same keys."""
    writers = [KeyWriter(settings, topic, 0, f"tx.{topic}", timedelta(hours=24)) for _ in range(count)]
    shards = [Shard(each) for each in writers]
    try:
        yield shards
    finally:
        for each in shards:
            each.end()
        for each in shards:
            each.join(time.monotonic() + 20)


def answer(positions):
    return b'"%d"' % positions[0][1]


def asked(shard, topic, key, content=None):
    """What a gateway answers to a request with a key."""
    written = Prepared((Outgoing(topic.replace(".keys", ".events"), b"k", key.encode()),), answer)
    made = Submission(key_digest("events", key), sha256(key.encode()).digest(), content or written)
    shard.submit(made)
    return made.reply.exception(40) or made.reply.result()


@pytest.mark.timeout(120)
def test_keys_that_retention_has_deleted_are_passed_over(settings, broker, topic):
    with gateways(settings, topic, 2) as (first, second):
        assert not asked(first, topic, "a").repeated
        assert not asked(second, topic, "b").repeated
        broker.delete_records(topic, {0: broker.end(topic, 0)})
        began = time.monotonic()
        assert not asked(first, topic, "c").repeated
        assert time.monotonic() - began < 10
        assert asked(second, topic, "c").repeated


@pytest.mark.timeout(120)
def test_a_topic_of_keys_that_was_made_again_is_read_as_a_whole(settings, broker, topic):
    with gateways(settings, topic, 2) as (first, second):
        for number in range(4):
            asked(first, topic, f"before-{number}")
        broker.delete(topic)
        broker.ensure(topic, 1, KEPT)
        written = asked(second, topic, "after")
        again = asked(first, topic, "after")
    assert (written.repeated, again.repeated) == (False, True)
    assert written.answer == again.answer


@pytest.mark.timeout(120)
def test_a_key_that_another_version_has_taken_is_not_refused(settings, topic):
    with gateways(settings, topic, 2) as (new, old):
        assert not asked(new, topic, "first").repeated
        written = asked(old, topic, "key")
        assert asked(new, topic, "key", UNFIT) == (written.answer, True)
        assert asked(new, topic, "other", UNFIT).status == 422


@pytest.mark.timeout(120)
def test_a_full_disk_passes(settings, topic, monkeypatch):
    full = threading.Event()
    add = KeyIndex.add

    def adding(index, used):
        pages = 2 if full.is_set() else 1_000_000
        index._database.execute(f"PRAGMA max_page_count = {pages}")
        add(index, used)
        if full.is_set():
            raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(KeyIndex, "add", adding)
    with gateways(settings, topic, 1) as (shard,):
        first = asked(shard, topic, "a")
        full.set()
        threading.Timer(1, full.clear).start()
        second = asked(shard, topic, "b")
        assert asked(shard, topic, "a") == (first.answer, True)
        assert asked(shard, topic, "b") == (second.answer, True)
        assert first.answer != second.answer
