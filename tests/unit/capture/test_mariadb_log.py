"""A binary log's stream without a server: what is whole, what was cut off, what is written already."""

import zlib
from dataclasses import replace
from struct import pack

import pytest

from penstock.capture.mysql import events
from penstock.capture.mysql.events import Event
from penstock.capture.mysql.place import offset, place
from penstock.capture.mysql.stream import Answers, Stream
from penstock.capture.position import BinlogPlace, Position
from penstock.capture.replication import System
from penstock.errors import CaptureError

FILE = "b.000007"


def stream(tmp_path, at=400, born=None):
    start = Position(System("1", 0), place(FILE, at), binlog=BinlogPlace(FILE, 0, "0-1-5"))
    answers = Answers(None, lambda _: None, lambda _: None, born or (lambda _: None), lambda _: None)
    return Stream(start, ("shop.t",), answers, tmp_path)


def gtid(sequence, ends, flags=0):
    return Event(events.GTID, 9, 1, 42, ends, pack("<QIB", sequence, 0, flags) + bytes(6))


def test_a_position_is_behind_what_was_committed(tmp_path):
    made = stream(tmp_path)
    assert not made.feed(gtid(6, 442))
    assert made.position.lsn == place(FILE, 400)
    assert made.feed(Event(events.XID, 9, 1, 31, 473, bytes(8)))
    assert list(made.changes()) == []
    assert made.position.lsn == place(FILE, 473)
    assert made.position.binlog.gtid == "0-1-6"


def test_a_transaction_that_is_half_written_stays_so_until_its_end(tmp_path):
    made = stream(tmp_path)
    made.position = replace(made.position, commit=place(FILE, 442), index=3)
    made.feed(Event(161, 9, 1, 42, 442, bytes(10)))
    assert (made.position.lsn, made.position.commit, made.position.index) == (
        place(FILE, 442), place(FILE, 442), 3,
    )  # fmt: skip
    made.feed(gtid(6, 484))
    assert made.feed(Event(events.XID, 9, 1, 31, 515, bytes(8)))
    list(made.changes())
    assert (made.position.commit, made.position.index) == (0, 0)


def test_a_transaction_that_a_kill_cut_off_never_was(tmp_path):
    made = stream(tmp_path)
    made.feed(gtid(6, 442))
    made.feed(Event(events.ROTATE, 0, 1, 40, 0, pack("<Q", 4) + b"b.000008"))
    made.feed(Event(events.FORMAT, 50, 1, 252, 256, bytes(230)))
    assert made.position.lsn == place("b.000008", 256)
    assert (made.position.binlog.file, made.position.binlog.born) == ("b.000008", 50)
    assert made.position.binlog.gtid == "0-1-5"
    made.feed(gtid(6, 298))
    with pytest.raises(CaptureError, match="has no end"):
        made.feed(gtid(7, 340))


def test_places_behind_four_gigabytes(tmp_path):
    made = stream(tmp_path, at=2**32 - 100)
    made.feed(gtid(6, 2**32 - 58))
    made.feed(Event(events.XID, 9, 1, 100, 42, bytes(8)))
    list(made.changes())
    assert offset(made.position.lsn) == 2**32 + 42


def test_a_damaged_event_is_refused():
    body = pack("<IBIIIH", 1, events.XID, 1, 31, 100, 0) + bytes(8)
    whole = body + pack("<I", zlib.crc32(body))
    assert events.event(whole, checked=True).body == bytes(8)
    with pytest.raises(CaptureError, match="damaged"):
        events.event(whole[:-1] + b"\1", checked=True)


def query(text, ends, database=b"shop"):
    body = pack("<IIBHH", 1, 0, len(database), 0, 0) + database + b"\0" + text.encode()
    return Event(events.QUERY, 9, 1, 30, ends, body)


@pytest.mark.parametrize(
    "text", ["insert into a_view values (1)", "SET STATEMENT sql_mode='' FOR INSERT INTO x SELECT 1"]
)
def test_a_change_that_is_logged_as_a_statement_is_refused_whatever_it_names(tmp_path, text):
    made = stream(tmp_path)
    made.feed(gtid(6, 442))
    made.feed(query("BEGIN", 472))
    made.feed(query(text, 502))
    assert made.feed(Event(events.XID, 9, 1, 31, 533, bytes(8)))
    with pytest.raises(CaptureError, match="as a statement"):
        list(made.changes())


@pytest.mark.parametrize("kind", events.LOADS)
def test_files_that_are_loaded_as_a_statement_are_refused(tmp_path, kind):
    made = stream(tmp_path)
    made.feed(gtid(6, 442))
    made.feed(Event(kind, 9, 1, 30, 472, bytes(40)))
    assert made.feed(Event(events.XID, 9, 1, 31, 503, bytes(8)))
    with pytest.raises(CaptureError, match="LOAD"):
        list(made.changes())


def test_a_table_in_memory_that_a_restart_emptied_is_none_of_ours(tmp_path):
    made = stream(tmp_path)
    made.feed(gtid(6, 442, events.STANDALONE))
    assert made.feed(query("DELETE FROM `shop`.`in_memory`", 472))
    assert len(list(made.changes())) == 1
    made.feed(gtid(7, 514, events.STANDALONE))
    made.feed(query("DELETE FROM `shop`.`t`", 544))
    with pytest.raises(CaptureError, match="as a statement"):
        list(made.changes())


def test_two_phases_of_what_is_not_captured_go_by(tmp_path):
    made = stream(tmp_path)
    made.feed(gtid(6, 442))
    made.feed(query("XA START X'61',X'',1", 472))
    made.feed(query("XA END X'61',X'',1", 502))
    made.feed(Event(events.XA_PREPARE, 9, 1, 30, 532, bytes(20)))
    assert made.position.lsn == place(FILE, 532)


def test_savepoints_are_the_same_in_capitals(tmp_path):
    made = stream(tmp_path)
    made.feed(gtid(6, 442))
    made.feed(query("SAVEPOINT `Here`", 472))
    made.feed(query("insert into x values (1)", 502))
    made.feed(query("ROLLBACK TO `HERE`", 532))
    assert made.feed(Event(events.XID, 9, 1, 31, 563, bytes(8)))
    assert list(made.changes()) == []
