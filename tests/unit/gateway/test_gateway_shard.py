"""A shard whose writer fails in ways that a broker can't be made to: each submission is written once."""

import sqlite3
import time
from threading import Event

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.errors import LogError, TopicError
from penstock.gateway import shard as shards
from penstock.gateway.key_index import KeyIndex, Used
from penstock.gateway.refusal import Refusal
from penstock.gateway.shard import Shard
from penstock.gateway.submission import Outgoing, Prepared, Submission, key_digest

FENCED = KafkaException(KafkaError(KafkaError._FENCED))
LARGE = KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))


class Writer:
    """Keeps what is written; `troubles` are raised one by one, before or after that."""

    id = "writer"

    def __init__(self, *troubles):
        self.troubles, self.written, self.opened, self.index = list(troubles), [], 0, KeyIndex()
        self.is_open, self.others, self.relearnt = False, [], 0

    def open(self):
        if not self.is_open:
            self.opened += 1
            self.is_open = True

    def drop(self):
        self.is_open = False

    def find(self, key):
        return self.index.find(key)

    def write(self, batch):
        assert self.is_open
        when, error = self.troubles.pop(0) if self.troubles else (None, None)
        if when == "before" or any(b"poison" in each.content.messages[0].value for each in batch):
            raise error or LARGE
        answers = [each.content.answer([(0, len(self.written) + n)]) for n, each in enumerate(batch)]
        self.written += [each.content.messages[0].value for each in batch]
        self.index.add(
            Used(each.key, each.body, answer, 1) for each, answer in zip(batch, answers, strict=True)
        )
        if when == "after":
            raise error
        return answers

    def catch_up(self):
        self.index.add(self.others)

    def relearn(self):
        self.drop()
        self.relearnt += 1

    def forget(self):
        pass

    def close(self):
        pass


def submission(key, value=b"v", body=b"b"):
    content = Prepared((Outgoing("t", None, value),), lambda places: f"{places}".encode())
    return Submission(key_digest("t", key), body, content)


def settled(writer, *submissions):
    """What becomes of submissions that come at once."""
    shard = Shard(writer)
    shard._settle(submissions)  # in one batch, as if they had waited
    shard.end()
    shard.join(time.monotonic() + 30)
    return [each.reply.exception() or each.reply.result() for each in submissions]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("error", [FENCED, SystemError("returned NULL"), LogError("no answer")])
def test_what_passes_is_tried_again_and_written_once(when, error):
    writer = Writer((when, error), (when, error))
    first, second = settled(writer, submission("a"), submission("b"))
    assert writer.written == [b"v", b"v"]
    assert (first.answer, second.answer) == (b"[(0, 0)]", b"[(0, 1)]")
    assert first.repeated == (when == "after")  # it was found in the log
    assert writer.opened == (3 if when == "before" else 2)


def test_the_same_key_twice_at_once_is_written_once():
    writer = Writer()
    first, again, other = settled(writer, submission("a"), submission("a"), submission("a", body=b"other"))
    assert len(writer.written) == 1
    assert again == (first.answer, True)
    assert (other.status, other.id) == (422, "gateway.key-reused")


def test_one_to_blame_hurts_no_other():
    writer = Writer()
    good, bad, better = settled(writer, submission("a"), submission("b", b"poison"), submission("c"))
    assert bad.status == 413
    assert [good.repeated, better.repeated] == [False, False]
    assert len(writer.written) == 2


def test_a_refusal_uses_no_key_up():
    writer = Writer()
    refused = Submission(key_digest("t", "a"), b"b", Refusal(422, "data.event", "does not fit"))
    found, written = settled(writer, refused, submission("a", body=b"right"))
    assert (found.status, written.answer) == (422, b"[(0, 0)]")


def test_what_does_not_pass_ends_at_once_and_what_does_after_a_while(monkeypatch):
    (missing,) = settled(Writer(("before", TopicError("no topic"))), submission("a"))
    assert isinstance(missing, TopicError)
    monkeypatch.setattr(shards, "_PATIENCE", 0.05)
    (away,) = settled(Writer(*[("before", LogError("away"))] * 100), submission("a"))
    assert isinstance(away, LogError)


def test_more_than_can_wait_is_refused(monkeypatch):
    monkeypatch.setattr(shards, "_MOST_WAITING", 2)
    writer, held = Writer(), Event()
    writer.is_open, writer.open = True, lambda: held.wait(5)
    shard = Shard(writer)
    for number in range(2):
        shard.submit(submission(str(number)))
    with pytest.raises(Refusal) as refused:
        shard.submit(submission("more"))
    held.set()
    assert refused.value.status == 429


def test_before_a_refusal_it_is_looked_whether_another_gateway_has_written_the_key():
    writer = Writer()
    key = key_digest("t", "a")
    writer.others = [Used(key, b"b", b"written by the other", 1)]
    refused = Submission(key, b"b", Refusal(422, "data.event", "the class of today does not take it"))
    other = Submission(key_digest("t", "c"), b"b", Refusal(422, "data.event", "does not fit"))
    found, unknown, written = settled(writer, refused, other, submission("d"))
    assert found == (b"written by the other", True)
    assert unknown.status == 422
    assert written == (b"[(0, 0)]", False)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_index_that_fails_is_learnt_anew(when):
    writer = Writer((when, sqlite3.OperationalError("database or disk is full")))
    (found,) = settled(writer, submission("a"))
    assert (found.answer, writer.written, writer.relearnt) == (b"[(0, 0)]", [b"v"], 1)


def test_a_disk_that_stays_full_is_said_to_be(monkeypatch):
    monkeypatch.setattr(shards, "_PATIENCE", 0.05)
    writer = Writer(*[("before", sqlite3.OperationalError("database or disk is full"))] * 100)
    (found,) = settled(writer, submission("a"))
    assert Refusal.of(found).status == 503
    assert "disk is full" in found.message
