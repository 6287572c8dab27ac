"""What every captured database gives: the same statements, and the same records."""

import pytest
from tests.capture.running import ops, rows

from penstock.capture import Wishes
from penstock.capture.database import make_session
from penstock.errors import CaptureError, CaptureHeldError


@pytest.fixture(params=["database", "maria"])
def shop(request):
    """A database of each kind."""
    return request.getfixturevalue(request.param)


def ids(found):
    return [each.after["id"] for each in found]


def insert(shop, first, last, table="t"):
    listed = ", ".join(f"({number})" for number in range(first, last + 1))
    shop.execute(f"insert into {table} (id) values {listed}")


def test_rows_first_then_every_change_in_the_order_of_commits(shop):
    shop.execute("create table orders (id int primary key, name varchar(20))")
    shop.execute("insert into orders values (1, 'a'), (2, 'b')")
    capture = shop.capture("orders")
    with shop.running(capture):
        shop.execute("insert into orders values (3, 'c')")
        shop.execute("update orders set name = 'B' where id = 2")
        shop.execute("delete from orders where id = 1")
    found = shop.records(capture, "orders")
    assert ops(found) == ["r", "r", "c", "u", "d", None]
    assert [each.key for each in found] == [{"id": n} for n in (1, 2, 3, 2, 1, 1)]
    assert found[3].after == {"id": 2, "name": "B"}
    assert found[4].before["id"] == 1
    assert [each.value["source"]["snapshot"] for each in found[:3]] == ["true", "true", "false"]


def test_a_restart_goes_on_without_a_gap_or_a_duplicate(shop):
    shop.execute("create table t (id int primary key)")
    capture = shop.capture("t")
    for turn in range(3):
        with shop.running(capture):
            insert(shop, turn * 10, turn * 10 + 9)
        insert(shop, 100 + turn, 100 + turn)
    with shop.running(capture):
        pass
    found = ids(shop.records(capture, "t"))
    assert found == [*range(10), 100, *range(10, 20), 101, *range(20, 30), 102]


def test_a_key_that_changes_is_a_deletion_and_a_new_row(shop):
    shop.execute("create table t (a int, b varchar(9), c int, primary key (b, a))")
    shop.execute("insert into t values (1, 'x', 5)")
    capture = shop.capture("t")
    with shop.running(capture):
        shop.execute("update t set a = 2")
    found = shop.records(capture, "t")
    assert ops(found) == ["r", "d", None, "c"]
    assert [each.key for each in found[1:]] == [{"a": 1, "b": "x"}] * 2 + [{"a": 2, "b": "x"}]
    assert found[1].headers["__debezium.newkey"] == b'{"b":"x","a":2}'
    assert found[3].headers["__debezium.oldkey"] == b'{"b":"x","a":1}'


def test_a_table_that_is_emptied_has_its_rows_deleted_one_by_one(shop):
    shop.execute("create table t (id int primary key)")
    insert(shop, 1, 3)
    capture = shop.capture("t")
    with shop.running(capture):
        shop.execute("delete from t where id = 2")
        insert(shop, 4, 4)
        shop.execute("truncate table t")
        insert(shop, 5, 5)
        shop.execute("truncate table t")
    found = shop.records(capture, "t")
    assert ops(found)[:5] == ["r", "r", "r", "d", None]
    assert rows(found) == []
    assert ops(found).count("t") == 2
    assert [each.key["id"] for each in found if each.op == "c"] == [4, 5]


def test_what_is_rolled_back_is_not_there_and_savepoints_count(shop):
    shop.execute("create table t (id int primary key)")
    capture = shop.capture("t")
    with shop.running(capture):
        shop.execute("begin; insert into t values (1); rollback")
        shop.execute(
            "begin; insert into t values (2); savepoint a; insert into t values (3); rollback to a; "
            "insert into t values (4); commit"
        )
    assert ids(shop.records(capture, "t")) == [2, 4]


def test_a_table_without_a_key_has_records_without_one(shop):
    shop.execute("create table t (a int, b varchar(9))")
    if shop.schema.startswith("s"):
        shop.execute("alter table t replica identity full")
    shop.execute("insert into t values (1, 'x'), (1, 'y')")
    capture = shop.capture("t")
    with shop.running(capture):
        shop.execute("update t set a = 2 where b = 'y'")
        shop.execute("delete from t where b = 'x'")
    found = shop.records(capture, "t")
    assert ops(found) == ["r", "r", "u", "d"]
    assert {each.key for each in found} == {None}
    assert found[2].before == {"a": 1, "b": "y"}
    assert found[3].before == {"a": 1, "b": "x"}


def test_columns_come_and_go(shop):
    shop.execute("create table t (id int primary key, a varchar(9))")
    capture = shop.capture("t")
    with shop.running(capture):
        shop.execute("insert into t values (1, 'x')")
        shop.execute("alter table t add column b int")
        shop.execute("insert into t values (2, 'y', 2)")
        shop.execute("alter table t drop column a")
        shop.execute("insert into t values (3, 3)")
        shop.execute("alter table t rename column b to c")
        shop.execute("insert into t values (4, 4)")
    assert [each.after for each in shop.records(capture, "t")] == [
        {"id": 1, "a": "x"},
        {"id": 2, "a": "y", "b": 2},
        {"id": 3, "b": 3},
        {"id": 4, "c": 4},
    ]


def test_a_snapshot_that_was_broken_off_goes_on(shop):
    shop.execute("create table t (id int primary key)")
    insert(shop, 1, 3000)
    capture = shop.capture("t")
    written = []

    def report(position):
        written.append(position)
        if len(written) > 9:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        make_session(shop.settings, capture, Wishes(chunk=100), report).run()
    assert 0 < written[-1].tables[f"{shop.schema}.t"].rows < 3000
    shop.execute("delete from t where id in (8, 2999)")
    with shop.running(capture, chunk=100):
        shop.execute("delete from t where id = 7")
        insert(shop, 4000, 4000)
    found = {each["id"] for each in rows(shop.records(capture, "t"))}
    assert found == {*range(1, 3001), 4000} - {7, 8, 2999}


def test_rows_are_written_again_and_what_is_gone_is_deleted(shop):
    shop.execute("create table t (id int primary key)")
    insert(shop, 1, 50)
    capture = shop.capture("t")
    with shop.running(capture):
        insert(shop, 60, 60)
    shop.execute("delete from t where id = 5")
    with shop.running(capture, snapshot_again=True, chunk=7):
        insert(shop, 61, 61)
    found = {each["id"] for each in rows(shop.records(capture, "t"))}
    assert found == {*range(1, 51), 60, 61} - {5}


@pytest.mark.parametrize("format", ["flat-json", "debezium-avro"])
def test_other_formats(shop, format):
    shop.execute("create table t (id int primary key, name varchar(20), price decimal(9, 2))")
    shop.execute("insert into t values (1, 'é', 1.50)")
    capture = shop.capture("t", format=format)
    with shop.running(capture):
        shop.execute("insert into t values (2, null, -3.25)")
        shop.execute("delete from t where id = 1")
    found = shop.records(capture, "t")
    if format == "flat-json":
        assert [(each.key, each.value) for each in found] == [
            (1, {"id": 1, "name": "é", "price": "1.50"}),
            (2, {"id": 2, "name": None, "price": "-3.25"}),
            (1, None),
        ]
    assert len(found) == (3 if format == "flat-json" else 4)


def test_the_transaction_topic_counts_events(shop):
    shop.execute("create table t (id int primary key)")
    capture = shop.capture("t", transactions=True)
    with shop.running(capture):
        shop.execute("begin; insert into t values (1); insert into t values (2); commit")
    found = shop.records(capture, "t")
    assert [each.value["transaction"]["total_order"] for each in found] == [1, 2]
    from tests.capture.running import records

    begun, ended = records(shop.settings, capture.topic("transaction"))
    assert (begun.value["status"], ended.value["status"], ended.value["event_count"]) == ("BEGIN", "END", 2)
    assert begun.value["id"] == ended.value["id"] == found[0].value["transaction"]["id"]


def test_a_second_one_is_refused(shop):
    shop.execute("create table t (id int primary key)")
    capture = shop.capture("t")
    with shop.running(capture):
        with pytest.raises(CaptureHeldError, match="runs already"), shop.running(capture):
            pass
        insert(shop, 1, 1)


def test_topics_with_records_of_somebody_else_are_refused(shop):
    shop.execute("create table t (id int primary key)")
    insert(shop, 1, 1)
    capture = shop.capture("t")
    with shop.running(capture):
        pass
    other = shop.capture("t", name=f"{shop.schema}_2", prefix=shop.schema)
    with pytest.raises(CaptureError, match="has no position"), shop.running(other):
        pass
    shop.drop(other)
