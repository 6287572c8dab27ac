"""What probes read: clocks in functions, records of coordinators, counters of a JVM, samples of topics."""

import json
import struct
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Table, Topic
from penstock.ops.doctor.coordinators import parse_generation, parse_transaction
from penstock.ops.doctor.declared import Declared, clocks
from penstock.ops.doctor.finding import Fix
from penstock.ops.doctor.fixing import write_down
from penstock.ops.doctor.java_collections import parse_counters, shares
from penstock.ops.doctor.reporting import document
from penstock.ops.doctor.sampling import _RecordReader
from penstock.pipeline import Pipeline
from penstock.process import windows


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


def message(value, key=b"u1", offset=5):
    return SimpleNamespace(
        partition=lambda: 0, offset=lambda: offset, timestamp=lambda: (1, 60_000), key=lambda: key,
        value=lambda: value,
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


def test_an_action_is_written_down(tmp_path: Path):
    fix = Fix("apply-topic", "sales", "penstock topics apply")
    for _ in range(2):
        write_down(tmp_path / "data", fix, "done")
    lines = (tmp_path / "data" / "actions.jsonl").read_text().splitlines()
    assert len(lines) == 2
    line = json.loads(lines[0])
    assert set(line) == {"at", "user", "action", "subject", "outcome"}
    assert document(time.time(), [])["healthy"]
