"""What probes read: clocks in functions, records of coordinators, counters of a JVM, samples of topics."""

import json
import os
import struct
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F

from penstock.errors import CaptureError
from penstock.events import Event
from penstock.log import Table, Topic
from penstock.ops.doctor import database_slots, java_collections, probing, writer
from penstock.ops.doctor.coordinators import parse_generation, parse_transaction
from penstock.ops.doctor.database_slots import distinct, slot_questions
from penstock.ops.doctor.declared import Declared, clocks
from penstock.ops.doctor.finding import Fix
from penstock.ops.doctor.fixing import write_down
from penstock.ops.doctor.java_collections import parse_counters, shares
from penstock.ops.doctor.reporting import document
from penstock.ops.doctor.sampling import _RecordReader
from penstock.ops.doctor.writer import writer_of
from penstock.ops.model import System
from penstock.ops.questions import ask
from penstock.pipeline import Pipeline, observed
from penstock.process import windows
from penstock.settings import Settings


@dataclass(frozen=True)
class Visit(Event):
    user: str
    at: datetime


visits = Topic("visits", Visit, key="user")


def by_event(visits):
    return visits.transform(windows.tumbling("1 minute", time="at", by="user", watermark="1 second"))


def by_clock(visits):
    return visits.withColumn("at", F.current_timestamp())


def by_arrival(visits):
    return visits.transform(windows.tumbling("1 minute", time=windows.PROCESSING_TIME, by="user"))


def by_written(visits):
    return visits.groupBy(F.window("_source.written", "1 minute")).count()


@pytest.mark.parametrize(
    ("function", "place"),
    [(by_clock, "F.current_timestamp()"), (by_arrival, "PROCESSING_TIME"), (by_written, "_source.written")],
)
def test_a_function_that_goes_by_the_clock_is_known(function, place):
    (found,) = clocks(function)
    assert place in found
    assert "in line" in found


def test_event_time_and_what_has_no_source_are_not_blamed():
    assert [*clocks(by_event)] == []
    assert [*clocks(len)] == []
    assert [*clocks(eval("lambda rows: rows"))] == []


def test_declared_flows_are_described():
    pipeline = Pipeline("shop")
    pipeline.flow(reads={"visits": visits}, writes=Topic("out", Visit), timeout="2 minutes")(by_clock)
    (flow,) = Declared((), (pipeline,)).flows("team")
    assert (flow.label, flow.reads, flow.timeout, len(flow.clocks)) == (
        "team:shop.by_clock",
        ("visits",),
        120.0,
        1,
    )
    assert Declared((), (pipeline,)).topic("visits") is visits


def test_topics_of_events_are_those_that_are_neither_tables_nor_captured():
    captured = Topic("rows", Visit, key="user", format="debezium-json")
    pipeline = Pipeline("shop")
    pipeline.flow(reads={"visits": visits}, writes=Topic("out", Visit))(by_clock)
    declared = Declared((Table("users", Visit, key="user"), captured, Topic("own", Visit)), (pipeline,))
    assert declared.events == ("own", "visits")


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def test_an_open_transaction_is_read_from_its_coordinator():
    key = struct.pack(">h", 0) + text("shop.0")
    head = struct.pack(">qhib", 7, 1, 60_000, 1)
    old = struct.pack(">h", 0) + head + struct.pack(">i", 1) + text("bills") + struct.pack(">iii", 2, 0, 3)
    new = struct.pack(">h", 1) + head + b"\x02\x06bills" + b"\x03" + struct.pack(">ii", 0, 3) + b"\x00"
    times = struct.pack(">qq", 5_000, 4_000)
    for value in (old + times, new + times + b"\x00"):
        found = parse_transaction(key, value)
        assert (found.id, found.started, found.timeout) == ("shop.0", 4.0, 60.0)
        assert found.partitions == (("bills", 0), ("bills", 3))
    done = struct.pack(">h", 0) + struct.pack(">qhib", 7, 1, 60_000, 4) + old[17:] + times
    assert parse_transaction(key, done) is None
    assert parse_transaction(key, b"\x00") is None


def test_generations_of_groups_are_read_by_both_protocols():
    classic = (
        struct.pack(">h", 2) + text("billing"),
        struct.pack(">h", 3) + text("consumer") + b"\x00\x00\x00\x05",
    )
    flexible = classic[0], struct.pack(">h", 4) + b"\x09consumer" + b"\x00\x00\x00\x06"
    newer = struct.pack(">h", 3) + text("billing"), struct.pack(">hi", 0, 7) + b"\x00"
    assert [parse_generation(*each) for each in (classic, flexible, newer)] == [
        ("billing", 5), ("billing", 6), ("billing", 7)]  # fmt: skip
    assert parse_generation(struct.pack(">h", 1) + text("billing"), b"\x00\x00") is None
    assert parse_generation(classic[0], None) is None


def test_counters_of_a_jvm_are_read_and_shares_made_of_them():
    name, value = b"sun.gc.collector.0.time\0", 7_000_000_000
    entry = struct.pack("<iiib", 20 + len(name) + 8, 20, 0, ord("J")) + b"\0\0\0"
    entry += struct.pack("<i", 20 + len(name)) + name + struct.pack("<q", value)
    head = struct.pack(">I", 0xCAFEC0C0) + b"\x01\x02\x00\x01" + struct.pack("<iiq", 0, 0, 0)
    data = head + struct.pack("<ii", 32, 1) + entry
    assert parse_counters(data) == {"sun.gc.collector.0.time": value}
    assert parse_counters(b"something else that is long enough to be one") == {}
    (recent,) = shares({"here/1": (2.0, 100.0)}, {"here/1": (7.0, 110.0)})
    (whole,) = shares({}, {"here/1": (7.0, 140.0)})
    assert (recent.share, recent.seconds, whole.share) == (0.5, 10.0, 0.05)


def message(value, key=b"u1", offset=5, headers=None):
    return SimpleNamespace(
        partition=lambda: 0, offset=lambda: offset, timestamp=lambda: (1, 60_000), key=lambda: key,
        value=lambda: value, headers=lambda: headers,
    )  # fmt: skip


def test_what_is_kept_of_a_record():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    reader = _RecordReader(visits, None)
    found = reader.record(message(json.dumps({"id": "v1", "user": "u1", "at": at.isoformat()}).encode()))
    assert (found.at, found.key, found.id, found.time) == (60.0, "u1", "v1", at.timestamp())
    assert (found.fields, found.error) == (("id", "user", "at"), "")
    assert "user" in reader.record(message(b'{"id": "v1"}')).error
    for strange in (None, b"", b"\x00\x00\x00\x00\x09x", b"[1]", b"{", b'{"at": 7, "id": {}}'):
        assert _RecordReader(None, None).record(message(strange, None)).time is None


def test_long_keys_and_ids_are_shown_in_part_and_told_apart_by_a_hash():
    def read(end):
        value = json.dumps({"id": "i" * 80 + end}).encode()
        return _RecordReader(None, None).record(message(value, b"k" * 80 + end.encode()))

    one, same, other = map(read, ("1", "1", "2"))
    assert (one.id, one.key) == (other.id, other.key) == ("i" * 60, "k" * 60)
    assert (one.whole_id, one.whole_key) == (same.whole_id, same.whole_key)
    assert one.whole_id != other.whole_id
    assert one.whole_key != other.whole_key
    short = _RecordReader(None, None).record(message(b'{"id": "\\ud83d"}'))
    assert (short.whole_id, short.whole_key) == (("\ud83d", ""), ("u1", ""))
    assert _RecordReader(None, None).record(message(b'{"id": "%s"}' % (b"\\ud83d" * 61))).id_hash


def test_the_writer_of_a_record_is_kept():
    made = [("penstock.made-by", b"team:shop.bill@v2 sales/3/17"), ("trace", b"1")]
    assert _RecordReader(None, None).record(message(b"{}", headers=made)).writer == "team:shop.bill sales/3"
    assert _RecordReader(None, None).record(message(b"{}")).writer == ""


@pytest.mark.parametrize(
    ("headers", "writer"),
    [
        ([("penstock.made-by", b"shop.bill sales/3/17")], "shop.bill sales/3"),
        ([("penstock.made-by", b"shop.bill@2 sales/3")], "shop.bill sales/3"),
        ([("penstock.made-by", b"shop.bill")], "shop.bill"),
        ([("trace", b"1"), ("penstock.made-by", b"shop.bill sales/3/17")], ""),
        ([("penstock.made-by", b"a stranger's own text")], ""),
        ([("penstock.made-by", b"\xff\xfe")], ""),
        ([("penstock.made-by", None)], ""),
        ([], ""),
    ],
)
def test_only_headers_of_flows_name_writers(headers, writer):
    assert writer_of(headers) == writer


def test_writers_are_known_by_the_same_marks_as_in_flows():
    assert (writer._OURS.pattern, writer._LONGEST) == (
        observed._OURS,
        observed._LONGEST,
    )


@dataclass
class Server:
    """A database's answer to the question for its slots; None is one that can't be reached."""

    started: str
    slots: tuple[str, ...]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, _):
        rows = [(self.started, name, False, "extended", 2**30) for name in self.slots]
        return SimpleNamespace(fetchall=lambda: rows)


def test_each_server_has_slots_of_its_own_and_one_that_is_away_hides_none(monkeypatch):
    first = Server("10:00:00.000001", ("old", "bank"))
    servers = {
        "postgresql://a/x": first,
        "host=a dbname=y": first,
        "postgres://b/x": Server("11:00", ("old",)),
    }

    def connect(dsn, _):
        if dsn.value not in servers:
            raise CaptureError("the database can't be reached")
        return servers[dsn.value]

    monkeypatch.setattr(database_slots, "connect", connect)
    settings = Settings(
        postgres="postgresql://a/x",
        connections={
            "same": {"dsn": "host=a dbname=y"},
            "gone": {"dsn": "host=c dbname=z"},
            "other": {"dsn": "postgres://b/x"},
            "search": {"url": "https://search"},
        },
    )
    missing = []
    answers = ask(slot_questions(settings), 10.0, missing)
    found = distinct(each for some in answers.values() for each in some)
    assert [(each.connection, each.name) for each in found] == [
        ("postgres", "old"),
        ("postgres", "bank"),
        ("other", "old"),
    ]
    assert missing == ["slots of gone: the database can't be reached"]


JAVA = SimpleNamespace(pid=77, uids=lambda: SimpleNamespace(effective=os.getuid()))
GOOD = struct.pack(">I", 0xCAFEC0C0) + b"\x01\x02\x00\x01" + struct.pack("<iiqii", 0, 0, 0, 32, 1)
GOOD += struct.pack("<iiib", 36, 20, 0, ord("J")) + b"\0\0\0" + struct.pack("<i", 28) + b"ticks\0\0\0"
GOOD += struct.pack("<q", 9)


@pytest.fixture
def counters_of(tmp_path, monkeypatch):
    """What is read where somebody has put something in the place of a JVM's file."""
    monkeypatch.setattr(java_collections, "_ROOT", tmp_path)

    def counters(put, java=JAVA):
        (tmp_path / "hsperfdata_a").mkdir()
        put(tmp_path / "hsperfdata_a" / "77")
        return java_collections._counters(java)

    return counters


def test_a_jvm_is_read_past_what_others_put_beside_its_file(counters_of, tmp_path):
    (tmp_path / "hsperfdata_b").mkdir()
    (tmp_path / "hsperfdata_b" / "77").write_bytes(GOOD)
    assert counters_of(os.mkfifo) == {"ticks": 9}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(GOOD[:28] + struct.pack("<i", 2**31 - 1) + GOOD[32:64], id="too many"),
        pytest.param(GOOD[:52].ljust(80, b"x"), id="a name without an end"),
        pytest.param(GOOD.replace(b"ticks", b"\xff\xff\xff\xff\xff"), id="no text"),
        pytest.param(GOOD[:32] + struct.pack("<i", 0) + GOOD[36:], id="an entry of no length"),
        pytest.param(GOOD[:32] + struct.pack("<i", -36) + GOOD[36:], id="an entry that goes back"),
    ],
)
@pytest.mark.timeout(10)
def test_a_file_that_no_jvm_wrote_ends_nothing(counters_of, content):
    assert counters_of(lambda path: path.write_bytes(content)) in ({}, {"ticks": 9})


@pytest.mark.timeout(10)
def test_only_a_file_of_the_process_and_its_user_is_read(counters_of, tmp_path):
    (tmp_path / "secret").write_bytes(GOOD)
    stranger = SimpleNamespace(pid=77, uids=lambda: SimpleNamespace(effective=os.getuid() + 1))
    assert counters_of(lambda path: path.symlink_to(tmp_path / "secret")) == {}
    (tmp_path / "hsperfdata_a" / "77").unlink()
    (tmp_path / "hsperfdata_a" / "77").write_bytes(GOOD)
    assert java_collections._counters(JAVA) == {"ticks": 9}
    assert java_collections._counters(stranger) == {}


def test_collections_are_asked_for_as_everything_else(monkeypatch, tmp_path):
    """Whatever comes of it, the other probes are there."""

    def fails(*_):
        raise OverflowError("a strange process")

    monkeypatch.setattr(probing, "read_collections", fails)
    monkeypatch.setattr(probing, "slot_questions", lambda _: {})
    asking = probing._Probing(Settings(data=tmp_path), System(0.0), Declared(), "here", sampled=False)
    found = asking.probes(None, {})
    assert found.collections == ()
    assert found.unanswered == ("collections: OverflowError: a strange process",)
    assert found.disks
    assert probing._collections(System(0.0), "here") == {}


def test_an_action_is_written_down(tmp_path: Path):
    fix = Fix("apply-topic", "sales", "penstock topics apply")
    for _ in range(2):
        write_down(tmp_path / "data", fix, "done")
    lines = (tmp_path / "data" / "actions.jsonl").read_text().splitlines()
    assert len(lines) == 2
    line = json.loads(lines[0])
    assert set(line) == {"at", "user", "action", "subject", "outcome"}
    assert document(time.time(), [])["healthy"]
