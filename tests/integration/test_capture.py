"""A database's changes as records: what is written for each of them."""

import io
import json

import fastavro
import pytest
from tests.capture.running import ops, records

from penstock.capture import Outbox
from penstock.capture.debezium_records import TRUNCATED
from penstock.errors import CaptureError
from penstock.log.cursor import Cursor
from penstock.registry import Registry


def test_rows_first_then_every_change_in_the_order_of_commits(database):
    database.execute("create table orders (id int primary key, name text)")
    database.execute("insert into orders values (1, 'a'), (2, 'b')")
    capture = database.capture("orders")
    with database.running(capture):
        database.execute("insert into orders values (3, 'c')")
        database.execute("update orders set name = 'B' where id = 2")
        database.execute("delete from orders where id = 1")
    found = database.records(capture, "orders")
    assert ops(found) == ["r", "r", "c", "u", "d", None]
    assert [each.key for each in found] == [{"id": n} for n in (1, 2, 3, 2, 1, 1)]
    assert found[3].after == {"id": 2, "name": "B"}
    assert found[4].before == {"id": 1, "name": None}
    assert [each.value["source"]["snapshot"] for each in found[:3]] == ["true", "true", "false"]


def test_a_table_that_is_emptied_has_its_rows_deleted_one_by_one(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1), (2), (3)")
    capture = database.capture("t")
    with database.running(capture):
        database.execute("delete from t where id = 2")
        database.execute("begin; insert into t values (4); truncate t; insert into t values (5); commit")
        database.execute("truncate t")
    found = database.records(capture, "t")
    assert ops(found)[:5] == ["r", "r", "r", "d", None]
    live = set()
    for each in found:
        if each.op in ("r", "c"):
            live.add(each.key["id"])
        elif each.op is None:
            live.remove(each.key["id"])
    assert not live
    assert ops(found).count("t") == 2
    assert [each.key["id"] for each in found if each.op == "c"] == [4, 5]


def test_a_large_transaction_is_streamed_and_its_undone_parts_left_out(database):
    database.execute("create table t (id int primary key, text text)")
    database.execute("alter system set logical_decoding_work_mem = '64kB'")
    database.execute("select pg_reload_conf()")
    capture = database.capture("t")
    try:
        with database.running(capture):
            database.execute(
                "begin; insert into t select i, 'gone' from generate_series(1, 9) i; truncate t; "
                "insert into t select i, repeat('x', 50) from generate_series(1, 30000) i; "
                "savepoint a; insert into t select i, 'undone' from generate_series(40001, 60000) i; "
                "rollback to a; insert into t values (30001, 'last'); commit"
            )
            database.execute(
                "begin; insert into t select i, 'no' from generate_series(70001, 90000) i; rollback"
            )
            database.execute("insert into t values (30002, 'after')")
    finally:
        database.execute("alter system reset logical_decoding_work_mem")
        database.execute("select pg_reload_conf()")
    found = database.records(capture, "t")
    emptied = next(place for place, each in enumerate(found) if each.op == "t")
    assert [each.after["id"] for each in found[:9]] == list(range(1, 10))
    assert ops(found[9:emptied]) == ["d", None] * 9
    assert [each.after["id"] for each in found[emptied + 1 :]] == list(range(1, 30003))


def test_a_table_without_a_key_has_records_without_one(database):
    database.execute("create table t (a int, b text)")
    database.execute("alter table t replica identity full")
    database.execute("insert into t values (1, 'x'), (1, 'x')")
    capture = database.capture("t")
    with database.running(capture):
        database.execute("update t set b = 'y' where ctid = (select min(ctid) from t)")
        database.execute("delete from t where b = 'x'")
    found = database.records(capture, "t")
    assert ops(found) == ["r", "r", "u", "d"]
    assert {each.key for each in found} == {None}
    assert found[2].before == {"a": 1, "b": "x"}
    assert found[3].before == {"a": 1, "b": "x"}


@pytest.mark.parametrize("identity", ["default", "full", "using index t_code"])
def test_the_key_is_the_primary_key_or_the_index_of_the_replica_identity(database, identity):
    database.execute("create table t (id int primary key, code text not null, more int)")
    database.execute("create unique index t_code on t (code)")
    database.execute(f"alter table t replica identity {identity}")
    capture = database.capture("t")
    with database.running(capture):
        database.execute("insert into t values (1, 'a', 5)")
        database.execute("update t set more = 6")
        database.execute("delete from t")
    found = database.records(capture, "t")
    assert ops(found) == ["c", "u", "d", None]
    key = {"code": "a"} if identity == "using index t_code" else {"id": 1}
    assert [each.key for each in found] == [key] * 4
    if identity == "full":
        assert found[1].before == {"id": 1, "code": "a", "more": 5}


@pytest.mark.parametrize("identity", ["default", "full"])
def test_a_large_value_that_stays_is_there_all_the_same(database, identity):
    database.execute("create table t (id int primary key, n int, text text)")
    database.execute("alter table t alter text set storage external")
    database.execute(f"alter table t replica identity {identity}")
    capture = database.capture("t")
    with database.running(capture):
        database.execute("insert into t values (1, 1, repeat('long', 5000))")
        database.execute("update t set n = 2")
        database.await_written(capture)
        database.execute("begin; update t set n = 3; delete from t; commit")
    found = database.records(capture, "t")
    assert found[1].after == {"id": 1, "n": 2, "text": "long" * 5000}
    gone = found[2].after
    assert gone.get("text", "long" * 5000) == "long" * 5000, "never a placeholder"


def test_a_key_that_is_stored_out_of_line_stays_the_key(database):
    database.execute("create table t (id text primary key, n int)")
    database.execute("alter table t alter id set storage external")
    capture = database.capture("t")
    with database.running(capture):
        database.execute("insert into t values (repeat('k', 2500), 1)")
        database.execute("update t set n = 2")
    assert [each.key for each in database.records(capture, "t")] == [{"id": "k" * 2500}] * 2


def test_partitions_are_under_the_table_that_they_are_parts_of(database):
    database.execute("create table t (id int primary key) partition by range (id)")
    database.execute("create table t1 partition of t for values from (0) to (10)")
    database.execute("create table t2 partition of t for values from (10) to (20)")
    database.execute("insert into t values (1), (11)")
    capture = database.capture("t")
    with database.running(capture):
        database.execute("insert into t values (2), (12)")
    assert [each.after["id"] for each in database.records(capture, "t")] == [1, 11, 2, 12]


def test_columns_come_go_and_change_in_mid_stream(database):
    database.execute("create table t (id int primary key, a int)")
    capture = database.capture("t")
    with database.running(capture):
        database.execute("insert into t values (1, 1)")
        database.execute("alter table t add column b text default 'new'")
        database.execute("insert into t values (2, 2, 'x')")
        database.execute("alter table t rename column a to c")
        database.execute("alter table t alter column c type text")
        database.execute("insert into t values (3, '3', 'y')")
        database.execute("begin; alter table t drop column b; insert into t values (4, '4'); commit")
    assert [each.after for each in database.records(capture, "t")] == [
        {"id": 1, "a": 1},
        {"id": 2, "a": 2, "b": "x"},
        {"id": 3, "c": "3", "b": "y"},
        {"id": 4, "c": "4"},
    ]


def test_flat_rows_are_rows_and_tombstones_under_a_plain_key(database):
    database.execute("create table t (id int primary key, a text)")
    database.execute("insert into t values (1, 'x')")
    capture = database.capture("t", format="flat-json")
    with database.running(capture):
        database.execute("update t set id = 2")
        database.execute("delete from t")
    found = database.records(capture, "t")
    assert [(each.key, each.value) for each in found] == [
        (1, {"id": 1, "a": "x"}),
        (1, None),
        (2, {"id": 2, "a": "x"}),
        (2, None),
    ]


def test_rows_of_an_outbox_are_events_of_their_own(database, unique):
    database.execute(
        "create table outbox "
        "(id uuid primary key, aggregatetype text, aggregateid text, type text, payload jsonb)"
    )
    capture = database.capture(outbox=Outbox(f"{database.schema}.outbox"), messages=("shop",))
    row = "('00000000-0000-0000-0000-000000000001', %s, '7', 'OrderPlaced', '{\"n\": 1}')"
    with database.running(capture):
        database.execute(f"insert into outbox values {row}", [f"orders-{unique}"])
        database.execute("delete from outbox")
        database.execute("insert into outbox values (gen_random_uuid(), 'not a topic', '7', 'x', '{}')")
        message = f'{{"topic":"orders-{unique}","key":"8","type":"OrderPaid","payload":{{"n":2}}}}'
        database.execute("select pg_logical_emit_message(true, 'shop', %s)", [message])
        database.execute("select pg_logical_emit_message(true, 'shop', 'no json')")
    found = records(database.settings, f"orders-{unique}")
    assert [(each.key, each.value) for each in found] == [(7, {"n": 1}), (8, {"n": 2})]
    assert [each.headers["type"] for each in found] == [b"OrderPlaced", b"OrderPaid"]
    dead = records(database.settings, f"{capture.name}.{database.schema}.outbox.dead-letters")
    assert b"not a topic" in dead[0].headers["penstock.dead.error"]
    assert records(database.settings, f"{capture.name}.messages.dead-letters")[0].value == b"no json"


def test_avro_envelopes_have_registered_schemas_that_follow_the_table(database):
    database.execute("create table t (id int primary key, price int, at timestamp, raw bytea)")
    database.execute("insert into t values (1, 7, '2026-01-02 03:04:05.678', '\\x00ff')")
    capture = database.capture("t", format="debezium-avro")
    with database.running(capture):
        database.execute("alter table t alter column price type text")
        database.execute("insert into t values (2, 'dear', null, null)")
        database.execute("truncate t")
    topic = capture.topic(f"{database.schema}.t")
    with Registry(database.settings) as registry, Cursor(topic, database.settings) as cursor:
        cursor.start()
        found = [
            (_avro(registry, each.key()), _avro(registry, each.value()))
            for each in cursor.read_to(cursor.ends())
        ]
        assert len(registry.versions(f"{topic}-value")) == 2
    first = found[0][1]["after"]
    assert first == {"id": 1, "price": 7, "at": 1767323045678000, "raw": b"\x00\xff"}
    assert found[1][1]["after"]["price"] == "dear"
    assert [(key and key["id"], value and value["op"]) for key, value in found if key != TRUNCATED] == [
        (1, "r"),
        (2, "c"),
        *[(key, op) for key in (1, 2) for op in ("d", None)],
    ], "and nothing that is no key in Avro"


def _avro(registry, data):
    if data is None or data == TRUNCATED:
        return data
    schema = fastavro.parse_schema(json.loads(registry.schema(int.from_bytes(data[1:5], "big")).text))
    return fastavro.schemaless_reader(io.BytesIO(data[5:]), schema, None)


def test_transactions_are_counted_in_a_topic_of_their_own(database):
    database.execute("create table a (id int primary key)")
    database.execute("create table b (id int primary key)")
    database.execute("insert into a values (0)")
    capture = database.capture("a", "b", transactions=True)
    with database.running(capture):
        with database.connection.transaction():
            database.execute("insert into a values (1), (2)")
            database.execute("insert into b values (1)")
            database.execute("update a set id = 3 where id = 2")
        database.execute("create table c (id int)")  # a transaction without events
    with database.running(capture):
        database.execute("truncate b")
    first, second = _by_status(records(database.settings, capture.topic("transaction")))
    counts = {"data_collection": f"{database.schema}.a", "event_count": 4}
    assert first["BEGIN"]["event_count"] is None
    assert first["END"]["event_count"] == 5
    assert first["END"]["data_collections"] == [
        counts,
        {"data_collection": f"{database.schema}.b", "event_count": 1},
    ]
    assert second["END"]["event_count"] == 1
    assert _places(database.records(capture, "a")) == [None, (1, 1), (2, 2), (4, 3), (5, 4)]
    assert _places(database.records(capture, "b")) == [(3, 1), None, (1, 1)]


def test_transactions_in_avro_and_a_refusal_of_flat_rows(database):
    database.execute("create table a (id int primary key)")
    capture = database.capture("a", transactions=True, format="debezium-avro")
    with database.running(capture):
        database.execute("insert into a values (1)")
    with (
        Registry(database.settings) as registry,
        Cursor(capture.topic("transaction"), database.settings) as c,
    ):
        c.start()
        found = [_avro(registry, each.value()) for each in c.read_to(c.ends())]
    assert [each["status"] for each in found] == ["BEGIN", "END"]
    assert found[1]["event_count"] == 1
    with pytest.raises(CaptureError, match="flat rows have no place for their transaction"):
        database.capture("a", transactions=True, format="flat-json")


def _by_status(found):
    """The records of each transaction, by their status."""
    made = {}
    for each in found:
        made.setdefault(each.value["id"], {})[each.value["status"]] = each.value
    return list(made.values())


def _places(found):
    places = [each.value["transaction"] for each in found if each.value is not None]
    return [None if each is None else (each["total_order"], each["data_collection_order"]) for each in places]
