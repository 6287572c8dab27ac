"""Tables of MariaDB that are read again: the wish for it is never apart from the statement that caused it."""

from struct import pack
from types import SimpleNamespace

import pytest

from penstock.capture import batch_writer
from penstock.capture.capture import Capture
from penstock.capture.mysql import events
from penstock.capture.mysql.events import Event
from penstock.capture.mysql.following import Beginning, Following
from penstock.capture.mysql.place import place
from penstock.capture.position import BinlogPlace, Position, TableProgress
from penstock.capture.replication import System
from penstock.errors import CaptureError

FILE = "b.000007"


class Written:
    """What a capture would write: the positions, in their order."""

    def __init__(self, capture):
        self.capture, self.positions = capture, []

    def write(self, _, position):
        self.positions.append(position)

    def ends(self, _):
        return {0: 10 + len(self.positions)}

    def transactions(self):
        return None

    def refuse_other_topics(self, position):
        raise CaptureError(f"looked at {position.lsn}")


@pytest.fixture
def written():
    return Written(Capture("shop", ("shop.a", "shop.b")))


@pytest.fixture
def made(written, tmp_path):
    known = TableProgress(done=True, key=("id int4",))
    position = Position(
        System("1", 0), place(FILE, 400), tables=dict.fromkeys(("shop.a", "shop.b"), known),
        binlog=BinlogPlace(FILE, 0),
    )  # fmt: skip
    server = SimpleNamespace(one=lambda *_: "0", ask=lambda *_: [])
    catalogue = SimpleNamespace(refuse_cascades=lambda _: None)
    source = SimpleNamespace(server=server, catalogue=catalogue)
    return Following(source, written, Beginning(position), None, None, tmp_path)


def statement(text, ends):
    body = pack("<IIBHH", 1, 0, 4, 0, 0) + b"shop\0" + text.encode()
    return Event(events.QUERY, 9, 1, 30, ends, body)


@pytest.mark.parametrize(
    "text", ["rename table a to x, b to a, x to b", "alter table a exchange partition p with table b"]
)
def test_a_statement_is_written_together_with_the_wish_to_read_again(made, written, text):
    stream = made._stream
    stream.feed(Event(events.GTID, 9, 1, 42, 442, pack("<QIB", 6, 0, events.STANDALONE) + bytes(6)))
    assert stream.feed(statement(text, 472))
    list(stream.changes())
    before, after = written.positions
    assert (before.commit, before.index, before.pending) == (place(FILE, 400), 0, [])
    assert (after.commit, after.index, after.pending) == (place(FILE, 400), 1, ["shop.a", "shop.b"])
    assert after.tables["shop.a"].sweep == {0: 11}  # with all that was before
    assert stream.position.pending == ["shop.a", "shop.b"]


def test_topics_are_looked_at_now_and_then(made, monkeypatch):
    made._writer.look_at_topics()
    monkeypatch.setattr(batch_writer, "_LOOK_AT_TOPICS", -1.0)
    with pytest.raises(CaptureError, match="looked at"):
        made._writer.look_at_topics()
