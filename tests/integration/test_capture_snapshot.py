"""The rows that are there: chunks, kills while they are written, and reading them again."""

import json
import threading
import time

import psycopg
import pytest
from tests.capture.process import CaptureProcess
from tests.capture.running import records

from penstock.capture import Outbox, Store
from penstock.capture.replication import connect
from penstock.capture.requests import send
from penstock.capture.slot import Source
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.errors import CaptureError
from penstock.testing import PointListener

BEFORE = "capture.before-commit"


def rows_of(found, name="id"):
    """The table that the records make, and how often each row was read."""
    rows, read = {}, {}
    for each in found:
        key = json.dumps(each.key)
        if each.value is None or each.op == "d":
            rows.pop(key, None)
        elif each.op != "t":
            rows[key] = each.after[name]
            read[key] = read.get(key, 0) + (each.op == "r")
    return sorted(rows.values()), read


def test_chunks_are_read_side_by_side_and_written_in_order(database):
    database.execute("create table t (a int, b text, n int, primary key (a, b))")
    database.execute("insert into t select i % 7, 'k' || i, i from generate_series(1, 3000) i")
    capture = database.capture("t")
    with database.running(capture, chunk=170, readers=3):
        pass
    found = database.records(capture, "t")
    assert sorted(each.after["n"] for each in found) == list(range(1, 3001))
    keys = [(each.key["a"], each.key["b"]) for each in found]
    assert keys == sorted(keys)


def test_never_leaves_out_what_is_there(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1)")
    capture = database.capture("t", snapshot="never")
    with database.running(capture):
        database.execute("insert into t values (2)")
    assert [each.after["id"] for each in database.records(capture, "t")] == [2]


@pytest.mark.parametrize("key", ["primary key", pytest.param("", marks=pytest.mark.long)])
def test_killed_in_the_snapshot_it_goes_on_while_the_table_changes(database, tmp_path, key):
    database.execute(f"create table t (id int {key}, n int)")
    database.execute("alter table t replica identity full")
    database.execute("insert into t select i, 0 from generate_series(1, 2000) i")
    capture = database.capture("t")
    passed, dies_at = [], 4 if key else 2
    with PointListener(lambda point, _: passed.append(point) or passed.count(BEFORE) >= dies_at) as points:
        process = CaptureProcess(database.settings, capture.name, tmp_path, "--chunk", "300", points=points)
        process.start()
        deadline = time.monotonic() + 60
        while passed.count(BEFORE) < dies_at and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    done = Store(database.settings).position(capture.name)
    assert done.pending
    database.execute("update t set n = 1 where id % 3 = 0")
    database.execute("delete from t where id % 5 = 0")
    database.execute("insert into t values (5001, 7)")
    stopped = threading.Event()
    writer = threading.Thread(target=_keep_changing, args=(database, stopped))
    writer.start()
    try:
        with database.running(capture, chunk=100):
            time.sleep(1)
            stopped.set()
            writer.join()
    finally:
        stopped.set()
    found = database.records(capture, "t")
    expected = sorted(n for (n,) in database.execute("select n from t").fetchall())
    if key:
        values, read = rows_of(found, "n")
        assert values == expected
        assert max(read.values()) == 1
    else:
        bag = []
        for each in found:
            if each.before is not None:
                bag.remove((each.before["id"], each.before["n"]))
            if each.after is not None:
                bag.append((each.after["id"], each.after["n"]))
        assert sorted(bag) == sorted(database.execute("select id, n from t").fetchall())


def _keep_changing(database, stopped):
    for turn in range(2, 10_000):
        if stopped.is_set():
            return
        database.execute("update t set n = %s where id %% 10 = %s", [turn, turn % 10])
        time.sleep(0.01)


def test_a_table_or_a_range_of_its_keys_is_read_again_while_the_stream_goes_on(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t select i from generate_series(1, 1000) i")
    capture = database.capture("t")
    path = f"{database.schema}.t"
    with database.running(capture, chunk=100), connect(database.settings.dsn(), "test") as connection:
        source = Source(connection, capture, "")
        send(SnapshotRequest(path, ("100",), ("300",)), source)
        database.await_written(capture)
        database.execute("insert into t values (1001)")
        send(SnapshotRequest(path), source)
        database.await_written(capture)
        for wrong in (("1", "2"), ("abc",)):
            with pytest.raises(CaptureError, match="is not a key"):
                send(SnapshotRequest(path, wrong), source)
    values, read = rows_of(database.records(capture, "t"))
    assert values == list(range(1, 1002))
    assert [read[json.dumps({"id": each})] for each in (1, 100, 101, 300, 301, 1001)] == [2, 2, 3, 3, 2, 1]


def test_requests_that_are_equal_wait_as_one(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t select i from generate_series(1, 10) i")
    capture = database.capture("t")
    path = f"{database.schema}.t"
    with database.running(capture):
        pass
    with connect(database.settings.dsn(), "test") as connection:
        for wanted in (SnapshotRequest(path), SnapshotRequest(path, ("5",)), SnapshotRequest(path)):
            send(wanted, Source(connection, capture, ""))
    with database.running(capture):
        pass
    _, read = rows_of(database.records(capture, "t"))
    assert [read[json.dumps({"id": each})] for each in (1, 10)] == [2, 3]


def test_a_table_that_is_added_later_is_read_while_the_stream_goes_on(database):
    for name in ("a", "b"):
        database.execute(f"create table {name} (id int primary key)")
        database.execute(f"insert into {name} values (1), (2)")
    capture = database.capture("a")
    with database.running(capture):
        wider = database.capture("a", "b")
        deadline = time.monotonic() + 30
        while len(database.records(wider, "b")) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        database.execute("insert into b values (3)")
        database.await_written(wider)
    assert rows_of(database.records(wider, "b"))[0] == [1, 2, 3]
    assert rows_of(database.records(wider, "a"))[1] == {'{"id": 1}': 1, '{"id": 2}': 1}


def test_rows_written_again_also_delete_what_is_gone(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1), (2), (3)")
    capture = database.capture("t")
    with database.running(capture):
        pass
    database.execute("select pg_drop_replication_slot(%s)", [capture.slot_name("")])
    database.execute("delete from t where id = 2")
    database.execute("insert into t values (4)")
    with pytest.raises(CaptureError, match="slot is gone"), database.running(capture):
        pass
    with database.running(capture, snapshot_again=True):
        database.execute("insert into t values (5)")
    assert rows_of(database.records(capture, "t"))[0] == [1, 3, 4, 5]


def test_when_needed_it_writes_the_rows_again_by_itself(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1), (2)")
    capture = database.capture("t", snapshot="when-needed")
    with database.running(capture):
        pass
    database.execute("select pg_drop_replication_slot(%s)", [capture.slot_name("")])
    database.execute("delete from t where id = 2")
    with database.running(capture):
        pass
    assert rows_of(database.records(capture, "t"))[0] == [1]


def test_requests_wait_for_each_other(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t select i from generate_series(1, 3000) i")
    capture = database.capture("t")
    path = f"{database.schema}.t"
    with database.running(capture, chunk=50), connect(database.settings.dsn(), "test") as connection:
        source = Source(connection, capture, "")
        for wanted in (None, ("100",), None):
            send(SnapshotRequest(path, last=wanted), source)
            time.sleep(0.3)
        database.execute(
            "select pg_logical_emit_message(true, 'penstock', %s)", [f"snapshot {source.slot_name} {{"]
        )
        database.execute(
            "select pg_logical_emit_message(true, 'penstock', %s)", [f"low {source.slot_name} x"]
        )
    values, read = rows_of(database.records(capture, "t"))
    assert values == list(range(1, 3001))
    assert (read['{"id": 1}'], read['{"id": 3000}']) == (4, 3)


def test_a_table_that_is_added_has_what_was_open_at_that_time(database):
    for name in ("a", "b"):
        database.execute(f"create table {name} (id int primary key)")
    capture = database.capture("a")
    with database.running(capture), psycopg.connect(database.settings.dsn().value) as other:
        other.execute(f"insert into {database.schema}.b values (1)")
        wider = database.capture("a", "b")
        time.sleep(6)
        other.execute(f"insert into {database.schema}.b values (2)")
        other.commit()
        database.await_written(wider)
    assert rows_of(database.records(wider, "b"))[0] == [1, 2]


def test_a_table_that_was_not_published_or_made_again_is_read_again(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1)")
    capture = database.capture("t")
    with database.running(capture):
        pass
    database.execute(f"alter publication {capture.publication_name('')} drop table t")
    database.execute("insert into t values (2)")
    with database.running(capture):
        database.execute("insert into t values (3)")
    assert rows_of(database.records(capture, "t"))[0] == [1, 2, 3]
    database.execute("drop table t; create table t (id int primary key); insert into t values (9)")
    with database.running(capture):
        database.execute("insert into t values (10)")
    assert rows_of(database.records(capture, "t"))[0] == [9, 10]


@pytest.mark.parametrize("point", [pytest.param(BEFORE, marks=pytest.mark.long), "capture.after-commit"])
def test_killed_while_a_table_is_published_again_it_is_read_again_all_the_same(database, tmp_path, point):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1)")
    capture = database.capture("t")
    with database.running(capture):
        pass
    database.execute(f"alter publication {capture.publication_name('')} drop table t")
    database.execute("insert into t values (2)")
    reached = []
    with PointListener(lambda found, _: found == point and not reached.append(found)) as points:
        process = CaptureProcess(database.settings, capture.name, tmp_path, points=points)
        process.start()
        deadline = time.monotonic() + 60
        while not reached and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    assert reached
    with database.running(capture):
        database.execute("insert into t values (3)")
    assert rows_of(database.records(capture, "t"))[0] == [1, 2, 3]


def test_a_table_that_is_renamed_at_work_is_noticed(database):
    database.execute("create table t (id int primary key)")
    capture = database.capture("t")
    refused = pytest.raises(CaptureError, match="is now called")
    with refused, database.running(capture):
        database.execute("alter table t rename to u; insert into u values (1)")
    database.execute("alter table u rename to t")


def test_a_key_that_is_renamed_brings_all_rows_under_their_new_keys(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1), (2)")
    capture = database.capture("t")
    with database.running(capture):
        database.execute("alter table t rename id to number")
        database.execute("delete from t where number = 1")
        database.await_written(capture)
    live = set()
    for each in database.records(capture, "t"):
        (live.discard if each.value is None else live.add)(json.dumps(each.key))
    assert live == {'{"number": 2}'}


def test_a_key_that_is_renamed_in_a_backlog_leaves_no_old_record_behind(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1), (2)")
    capture = database.capture("t")
    with database.running(capture):
        pass
    database.execute("insert into t values (3)")
    database.execute("alter table t rename id to number")
    database.execute("delete from t where number = 1")
    with database.running(capture):
        database.await_written(capture)
    live = set()
    for each in database.records(capture, "t"):
        (live.discard if each.value is None else live.add)(json.dumps(each.key))
    assert live == {'{"number": 2}', '{"number": 3}'}


@pytest.mark.long
def test_an_outbox_that_is_added_loses_and_doubles_no_event(database, unique):
    database.execute("create table t (id int primary key)")
    database.execute(
        "create table o (id bigserial primary key, aggregatetype text, aggregateid text, payload jsonb)"
    )
    add = (
        "insert into o (aggregatetype, aggregateid, payload) "
        "select %s, 'k', to_jsonb(i) from generate_series(%s::int, %s::int) i"
    )
    topic = f"events-{unique}"
    database.execute(add, [topic, 1, 50])
    capture = database.capture("t")
    with database.running(capture):
        wider = database.capture("t", outbox=Outbox(f"{database.schema}.o"))
        for number in range(51, 300):
            database.execute(add, [topic, number, number])
            time.sleep(0.02)
        database.await_written(wider)
        database.execute(add, ["_penstock_ledger.x", 1, 1])
    assert sorted(each.value for each in records(database.settings, topic)) == list(range(1, 300))
    dead = records(database.settings, f"{capture.name}.{database.schema}.o.dead-letters")
    assert [b"not for events" in each.headers["penstock.dead.error"] for each in dead] == [True]
