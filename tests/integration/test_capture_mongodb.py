"""Captures of MongoDB's change streams, against a stand-in that speaks its protocol (tests/mongo)."""

import datetime
import json
import threading
import time
import uuid
from dataclasses import replace
from itertools import pairwise

import pytest
from bson import Binary, Decimal128, Int64, ObjectId, json_util
from bson.datetime_ms import DatetimeMS
from tests.capture.mongodb import CONNECTION, documents
from tests.capture.process import CaptureProcess
from tests.capture.running import ops
from typer.testing import CliRunner

from penstock.capture import Store, Wishes
from penstock.capture.database import make_session, open_database
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.capture.status import status
from penstock.cli.main import app
from penstock.errors import CaptureError, ChangesLostError, SourceError

pytestmark = pytest.mark.long  # `make verify`


def by_id(found):
    return sorted(found, key=lambda each: str(each["_id"]))


def await_all(mongo, capture, collection, seconds=60):
    """Wait until the topic makes the collection."""
    wanted = by_id(mongo.db[collection].find())
    deadline = time.monotonic() + seconds
    while by_id(documents(mongo.records(capture, collection))) != wanted:
        assert time.monotonic() < deadline, "the topic does not become what the collection is"
        time.sleep(0.3)


def progress(mongo, capture):
    """How many documents and changes are written."""
    found = Store(mongo.settings).position(capture.name)
    return 0 if found is None else found.changes + sum(each.rows for each in found.tables.values())


def await_progress(mongo, capture, before, seconds=60):
    deadline = time.monotonic() + seconds
    while progress(mongo, capture) <= before:
        assert time.monotonic() < deadline, "the capture writes nothing"
        time.sleep(0.02)


def test_the_envelope_of_each_change_is_that_of_debeziums_connector(mongo):
    orders = mongo.db.orders
    orders.insert_one({"_id": 1, "price": 5})
    capture = mongo.capture("orders")
    with mongo.running(capture):
        orders.insert_one({"_id": 2, "price": 7, "note": "x"})
        mongo.await_written(capture)
        orders.update_one({"_id": 2}, {"$set": {"price": 8}, "$unset": {"note": 1}})
        mongo.await_written(capture)
        orders.replace_one({"_id": 2}, {"name": "y"})
        mongo.await_written(capture)
        orders.delete_one({"_id": 2})
    found = mongo.records(capture, "orders")
    assert ops(found) == ["r", "c", "u", "u", "d", None]
    read, made, updated, replaced, deleted, tombstone = found
    assert [each.key for each in found] == [{"id": "1"}] + [{"id": "2"}] * 5
    assert list(made.value) == [
        *("before", "after", "updateDescription", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"),
    ]
    source = made.value["source"]
    assert list(source) == [
        *("version", "connector", "name", "ts_ms", "snapshot", "db", "sequence", "ts_us", "ts_ns"),
        *("collection", "ord", "lsid", "txnNumber", "wallTime"),
    ]
    assert (source["connector"], source["name"]) == ("mongodb", capture.name)
    assert (source["db"], source["collection"], source["snapshot"]) == (mongo.schema, "orders", "false")
    assert abs(source["ts_ms"] / 1000 - time.time()) < 60
    assert abs(source["wallTime"] / 1000 - time.time()) < 60
    assert read.value["source"]["snapshot"] == "true"
    assert (made.before, made.after) == (None, '{"_id":2,"price":7,"note":"x"}')
    assert updated.after == '{"_id":2,"price":8}'
    assert updated.value["updateDescription"] == {
        "removedFields": ["note"], "updatedFields": '{"price":8}', "truncatedArrays": None,
    }  # fmt: skip
    assert (replaced.after, replaced.value["updateDescription"]) == ('{"_id":2,"name":"y"}', None)
    assert (deleted.before, deleted.after, tombstone.value) == (None, None, None)


def test_values_of_all_types_are_extended_json(mongo):
    given = {
        "_id": ObjectId("596e275826f08b2730779e1f"),
        "decimal": Decimal128("12345678901234567890.120"),
        "date": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000),
        "old": datetime.datetime(1899, 12, 31),
        "binary": b"kafka",
        "uuid": Binary(uuid.UUID(int=5).bytes, 4),
        "long": Int64(2**53 + 1),
        "double": 0.1,
        "nan": float("nan"),
        "infinite": float("-inf"),
        "null": None,
        "text": 'ä "quoted" €',
        "nested": {"list": [1, {"deep": [True, None]}], "empty": {}},
    }
    mongo.db.types.insert_one(given)
    capture = mongo.capture("types")
    with mongo.running(capture):
        mongo.db.types.insert_one(
            {**given, "_id": {"a": ObjectId("596e275826f08b2730779e10"), "n": Int64(7)}}
        )
    read, made = mongo.records(capture, "types")
    assert read.key == {"id": '{"$oid":"596e275826f08b2730779e1f"}'}
    assert made.key == {"id": '{"a":{"$oid":"596e275826f08b2730779e10"},"n":7}'}
    strict = json.loads(read.after, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert {name: value for name, value in strict.items() if name not in ("text", "nested", "null")} == {
        "_id": {"$oid": "596e275826f08b2730779e1f"},
        "decimal": {"$numberDecimal": "12345678901234567890.120"},
        "date": {"$date": 1767323045678},
        "old": {"$date": -2209075200000},
        "binary": {"$binary": "a2Fma2E=", "$type": "00"},
        "uuid": {"$binary": "AAAAAAAAAAAAAAAAAAAABQ==", "$type": "04"},
        "long": {"$numberLong": "9007199254740993"},
        "double": 0.1,
        "nan": {"$numberDouble": "NaN"},
        "infinite": {"$numberDouble": "-Infinity"},
    }
    again, text = json_util.loads(read.after), json_util.loads(made.after)
    assert (again["nested"], again["text"], again["null"]) == (given["nested"], given["text"], None)
    assert {name: str(text[name]) for name in text if name != "_id"} == {
        name: str(again[name]) for name in again if name != "_id"
    }


def test_dates_beyond_those_of_python_are_kept(mongo):
    mongo.db.far.insert_one({"_id": 1, "at": DatetimeMS(2**50)})
    capture = mongo.capture("far")
    with mongo.running(capture):
        pass
    assert [each.after for each in mongo.records(capture, "far")] == [f'{{"_id":1,"at":{{"$date":{2**50}}}}}']


def test_a_restart_neither_loses_nor_doubles_a_change(mongo):
    orders, capture = mongo.db.orders, mongo.capture("orders")
    for turn in range(4):
        with mongo.running(capture):
            orders.insert_one({"_id": f"on {turn}"})
        orders.insert_one({"_id": f"off {turn}"})
        orders.delete_one({"_id": f"on {turn}"})
    with mongo.running(capture):
        pass
    found = [(each.op, each.key["id"]) for each in mongo.records(capture, "orders")]
    wanted = []
    for turn in range(4):
        on, off = f'"on {turn}"', f'"off {turn}"'
        wanted += [("c", on), ("c", off), ("d", on), (None, on)]
    assert found == wanted


def test_an_update_of_a_document_that_is_gone_has_none_after_it(mongo):
    orders, capture = mongo.db.orders, mongo.capture("orders")
    with mongo.running(capture):
        orders.insert_one({"_id": 1, "a": 1})
    orders.update_one({"_id": 1}, {"$set": {"a": 2}})
    orders.delete_one({"_id": 1})
    with mongo.running(capture):
        pass
    found = mongo.records(capture, "orders")
    assert ops(found) == ["c", "u", "d", None]
    assert (found[1].after, found[1].value["updateDescription"]["updatedFields"]) == (None, '{"a":2}')


def test_a_snapshot_in_chunks_of_ids_of_several_types(mongo):
    ids = [*range(7), 2.5, *"abc", ObjectId(), ObjectId(), {"a": 1}, {"a": 2}, datetime.datetime(2026, 1, 1)]
    mongo.db.mixed.insert_many([{"_id": each} for each in reversed(ids)])
    capture = mongo.capture("mixed")
    with mongo.running(capture, chunk=3) as positions:
        mongo.db.mixed.insert_one({"_id": "later"})
    found = mongo.records(capture, "mixed")
    assert ops(found) == ["r"] * len(ids) + ["c"]
    assert len({str(each.key) for each in found}) == len(ids) + 1
    rows = [each.tables[f"{mongo.schema}.mixed"].rows for each in positions]
    assert max(later - former for former, later in pairwise(rows)) == 3


def test_a_stopped_snapshot_goes_on_behind_its_last_chunk(mongo):
    mongo.db.t.insert_many([{"_id": each} for each in range(10)])
    capture = mongo.capture("t")

    def report(position):
        if position.tables[f"{mongo.schema}.t"].rows == 6:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        make_session(mongo.settings, capture, Wishes(chunk=3), report).run()
    mongo.db.t.delete_many({"_id": {"$in": [1, 8]}})
    mongo.db.t.insert_one({"_id": 11})
    with mongo.running(capture, chunk=3):
        pass
    found = mongo.records(capture, "t")
    assert [each.key["id"] for each in found if each.op == "r"] == [*"0123456", "7", "9", "11"]
    assert by_id(documents(found)) == by_id(mongo.db.t.find())


def test_snapshot_again_sweeps_what_is_gone(mongo):
    mongo.db.t.insert_many([{"_id": each} for each in range(5)])
    capture = mongo.capture("t")
    with mongo.running(capture):
        pass
    mongo.db.t.delete_many({"_id": {"$lt": 2}})
    mongo.connection.admin.command("forgetHistory")
    with pytest.raises(ChangesLostError, match="does not have the changes") as error, mongo.running(capture):
        pass
    assert "--snapshot-again" in str(error.value.hint)
    with mongo.running(capture, snapshot_again=True):
        mongo.db.t.insert_one({"_id": 9})
    assert [each["_id"] for each in by_id(documents(mongo.records(capture, "t")))] == [2, 3, 4, 9]
    mongo.db.t.delete_one({"_id": 9})
    mongo.connection.admin.command("forgetHistory")
    with mongo.running(mongo.capture("t", snapshot="when-needed")):
        pass
    assert [each["_id"] for each in by_id(documents(mongo.records(capture, "t")))] == [2, 3, 4]


def test_documents_of_a_dropped_collection_are_deleted(mongo):
    mongo.db.t.insert_many([{"_id": each} for each in range(3)])
    capture = mongo.capture("t")
    with mongo.running(capture):
        mongo.db.t.drop()
        mongo.await_written(capture)
        assert documents(mongo.records(capture, "t")) == []
        mongo.db.t.insert_one({"_id": 2, "new": True})
    with mongo.running(capture):
        pass
    assert documents(mongo.records(capture, "t")) == [{"_id": 2, "new": True}]
    mongo.db.t.drop()
    mongo.db.t.insert_one({"_id": 5})
    with mongo.running(capture):
        pass
    assert documents(mongo.records(capture, "t")) == [{"_id": 5}]


def test_collections_are_added_and_read_again_on_request(mongo):
    mongo.db.a.insert_many([{"_id": 1}, {"_id": 2}])
    mongo.db.b.insert_one({"_id": 7})
    capture = mongo.capture("a")
    with mongo.running(capture):
        pass
    capture = mongo.capture("a", "b")
    with open_database(mongo.settings, capture) as found:
        found.request(SnapshotRequest(f"{mongo.schema}.a"))
        with pytest.raises(CaptureError, match="as a whole"):
            found.request(SnapshotRequest(f"{mongo.schema}.a", ("1",)))
        with pytest.raises(CaptureError, match="no collection"):
            found.request(SnapshotRequest(f"{mongo.schema}.c"))
    with mongo.running(capture):
        mongo.db.a.insert_one({"_id": 3})
        mongo.await_written(capture)
        mongo.db.b.insert_one({"_id": 8})
    found = [(each.op, each.key["id"]) for each in mongo.records(capture, "a")]
    assert [found.count(each) for each in (("r", "1"), ("r", "2"), ("c", "3"))] == [2, 2, 1]
    assert ops(mongo.records(capture, "b")) == ["r", "c"]


def test_wishes_that_documents_can_not_fulfil_are_refused(mongo):
    mongo.db.t.insert_one({"_id": 1})
    for more, said in (
        ({"format": "flat-json"}, "can't be written as flat-json"),
        ({"format": "debezium-avro"}, "can't be written as debezium-avro"),
        ({"slot": "s"}, "have no slot"),
        ({"transactions": True}, "have no transactions"),
    ):
        capture = mongo.capture("t", **more)
        with pytest.raises(CaptureError, match=said), open_database(mongo.settings, capture) as found:
            found.check()


def test_a_server_that_is_away_is_tried_again_and_its_password_is_in_no_text(mongo):
    dsn = "mongodb://shop:secret@127.0.0.1:1/?serverSelectionTimeoutMS=100"
    settings = replace(mongo.settings, connections={CONNECTION: {"dsn": dsn}})
    with pytest.raises(SourceError) as error, open_database(settings, mongo.capture("t")) as found:
        found.check()
    assert "secret" not in f"{error.value} {error.value.hint}"


def test_a_killed_process_loses_and_doubles_nothing(mongo, tmp_path):
    """It is killed in its snapshot and in its stream, while documents are inserted, updated and deleted."""
    t = mongo.db.t
    t.insert_many([{"_id": each, "n": 0} for each in range(200)])
    capture, process = mongo.capture("t"), None
    stopped = threading.Event()
    written = {}

    def write():
        turn = 0
        while not stopped.wait(0.005):
            turn += 1
            if turn % 3 == 0:
                t.delete_one({"_id": turn // 2})
            elif turn % 3 == 1:
                t.update_one({"_id": 1000 + turn // 4}, {"$set": {"n": turn}})
            else:
                t.insert_one({"_id": 1000 + turn, "n": turn})
                written[str(1000 + turn)] = 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        process = CaptureProcess(mongo.settings, capture.name, tmp_path, "--chunk", "20")
        for _ in range(4):
            before = progress(mongo, capture)
            process.start()
            await_progress(mongo, capture, before)
            process.kill()
    finally:
        stopped.set()
        writer.join()
    process.start()
    try:
        await_all(mongo, capture, "t")
    finally:
        process.stop()
    inserted = [each.key["id"] for each in mongo.records(capture, "t") if each.op == "c"]
    assert len(inserted) == len(set(inserted)), "an insert is doubled"
    assert set(inserted) <= set(written)


def test_the_commands(mongo, monkeypatch, tmp_path):
    for name, value in mongo.settings.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    name, path = mongo.schema, f"{mongo.schema}.orders"
    run = lambda *words: CliRunner().invoke(app, ["capture", *words])  # noqa: E731
    made = run("add", name, "--connection", CONNECTION, "--tables", path)
    assert made.exit_code == 0, made.output
    assert "there is no collection" in made.output
    capture = Store(mongo.settings).get(name)
    with mongo.running(capture):
        mongo.db.orders.insert_one({"_id": 1})
        assert status(mongo.settings, name).state == "running"
    found = status(mongo.settings, name)
    assert (found.state, found.changes, found.snapshot, found.error) == ("stopped", 1, "done", "")
    assert found.behind is None
    assert "changeStream" in run("role", name).output
    assert "no columns" in str(run("classes", name).exception)
    assert run("snapshot", name, path).exit_code == 0
    assert run("pause", name).exit_code == 0
    assert run("resume", name).exit_code == 0
    assert name in run("list").output
    assert run("remove", name, "--yes").exit_code == 0
    assert not Store(mongo.settings).has(name)
