"""Following a topic: when nothing comes, the follower is told so, once."""

import json

import pytest
from typer.testing import CliRunner

from penstock.cli.topics import app
from penstock.log import tail
from penstock.settings import Settings


class Message:
    """A message of one byte."""

    def __getattr__(self, name):
        found = {"partition": 0, "offset": 0, "key": b"key", "timestamp": (1, 0), "value": b"1"}
        return lambda: found.get(name)


class Cursor:
    """Stands in for a topic of one partition: what each read finds, and nothing more after that."""

    def __init__(self, *reads, end=None):
        self._reads = list(reads)
        self._end = sum(map(len, reads)) if end is None else end
        self.position = {0: 0}

    def __call__(self, *_, **__):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self, _at):
        pass

    def ends(self):
        return {0: self._end}

    def read(self):
        found = self._reads.pop(0) if self._reads else []
        self.position[0] += len(found)
        return found

    def follow(self):
        yield from (Message(), Message())


@pytest.fixture
def topic(monkeypatch):
    """Say what is in the topic; a pause is a tenth of a second."""
    monkeypatch.setattr(tail, "_PAUSE", 0.1)
    return lambda *reads, **more: monkeypatch.setattr(tail, "Cursor", Cursor(*reads, **more))


@pytest.mark.parametrize(("reads", "seen"), [((), 0), (([Message()] * 2, [], [Message()]), 3)])
def test_a_pause_is_told_once_with_what_has_come(topic, reads, seen):
    topic(*reads)
    told = []
    lines = list(tail.tail("orders", Settings(), beginning=True, waiting=told.append))
    assert (len(lines), told) == (seen + 2, [seen])


def test_nobody_is_told_who_has_what_was_asked_for(topic):
    topic([Message()] * 2)
    told = []
    assert len(list(tail.tail("orders", Settings(), limit=2, waiting=told.append))) == 2
    assert told == []


def test_what_is_slow_to_come_is_no_pause(topic, monkeypatch):
    monkeypatch.setattr(tail, "_PAUSE", 0)
    told = []
    lines = tail._followed(Cursor([], [], [Message()]), told.append)
    next(lines)
    assert told == []
    next(lines)
    assert told == [1]


@pytest.mark.parametrize(
    ("options", "reads", "said"),
    [
        (["--from-beginning"], (), "orders has no events yet; waiting, Ctrl-C ends it\n"),
        (["--from-beginning"], ([Message()],), "orders has no more events yet; waiting, Ctrl-C ends it\n"),
        ([], (), "orders has no more events yet; waiting, Ctrl-C ends it\n"),
    ],
)
def test_the_command_says_on_standard_error_that_it_waits(topic, tmp_path, monkeypatch, options, reads, said):
    monkeypatch.chdir(tmp_path)
    topic(*reads)
    done = CliRunner().invoke(app, ["tail", "orders", "-n", "2", *options])
    assert (done.exit_code, done.stderr) == (0, said)
    assert [json.loads(line)["value"] for line in done.stdout.splitlines()] == [1, 1]
