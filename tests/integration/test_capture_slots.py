"""What a capture asks of PostgreSQL, and what it refuses: lost slots, other servers, missing rights."""

import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.capture.running import Database

from penstock.capture import Capture, Runner, Store, Wishes, batch_writer
from penstock.capture.lost import refuse_lost
from penstock.capture.position import Position
from penstock.capture.replication import System, connect
from penstock.capture.role import role_script
from penstock.capture.slot import Slot, Source
from penstock.capture.status import status
from penstock.errors import CaptureError, ChangesLostError
from penstock.log import Broker
from penstock.settings import Secret

SHOP = Capture("shop", tables=("public.orders",))


def position(**more):
    return Position(**{"system": System("7", 1), "lsn": 100} | more)


def slot(**more):
    return Slot(
        **{"name": "s", "holder": "", "confirmed": 90, "status": "reserved", "retained": 0, "behind": 0}
        | more
    )


def test_a_slot_behind_the_position_is_as_it_should_be():
    refuse_lost(SHOP, slot(), position(), System("7", 1), 100)
    refuse_lost(SHOP, slot(confirmed=100), position(), System("7", 1), 500)


@pytest.mark.parametrize(
    ("found", "system", "words"),
    [
        (None, System("7", 1), "slot is gone.*snapshot-again"),
        (slot(status="lost"), System("7", 1), "max_slot_wal_keep_size.*snapshot-again"),
        (slot(confirmed=101), System("7", 1), "made again or read by somebody else"),
        (slot(), System("8", 1), "another PostgreSQL: its id is 8"),
        (slot(), System("7", 2), "timeline 2.*accept-timeline"),
    ],
)
def test_lost_changes_are_refused_with_what_to_do(found, system, words):
    with pytest.raises(CaptureError, match=f"(?s){words}"):
        refuse_lost(SHOP, found, position(), system, 500)


def test_a_server_that_was_set_back_is_noticed():
    with pytest.raises(ChangesLostError, match="was set back"):
        refuse_lost(SHOP, slot(), position(), System("7", 1), 99)


def test_a_slot_that_was_made_again_is_noticed(database):
    database.execute("create table t (id int primary key)")
    capture = database.capture("t")
    with database.running(capture):
        database.execute("insert into t values (1)")
    name = capture.slot_name("")
    database.execute("select pg_drop_replication_slot(%s)", [name])
    database.execute("insert into t values (2)")
    database.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
    with pytest.raises(CaptureError, match="changes are lost"), database.running(capture):
        pass


@contextmanager
def commits_wait(database):
    """Let commits wait for a standby that there is none of: they are in the log, and nobody sees them."""
    database.execute("alter system set synchronous_standby_names = 'nobody'")
    database.execute("select pg_reload_conf()")
    time.sleep(0.5)  # until all of its processes know
    try:
        yield
    finally:
        database.execute("alter system reset synchronous_standby_names")
        database.execute("select pg_reload_conf()")


def test_a_change_is_in_the_topic_when_others_see_it_and_no_earlier(database):
    database.execute("create table t (id int primary key)")
    capture = database.capture("t")
    with database.running(capture), psycopg.connect(database.settings.dsn().value) as other:
        with commits_wait(database):
            other.execute(f"insert into {database.schema}.t values (1)")
            waiting = threading.Thread(target=other.commit)
            waiting.start()
            time.sleep(1)
            assert waiting.is_alive()
            assert database.execute("select * from t").fetchall() == []
            assert database.records(capture, "t") == []
        waiting.join(10)
        assert not waiting.is_alive()
    assert [each.after["id"] for each in database.records(capture, "t")] == [1]


def test_the_second_on_one_slot_is_told_who_has_it(database):
    database.execute("create table t (id int primary key)")
    capture = database.capture("t")
    with database.running(capture):
        other = Runner(database.settings, capture.name, Wishes(stopped=threading.Event()))
        with pytest.raises(
            CaptureError, match=r"runs already: its slot is held by process \d+ of PostgreSQL"
        ):
            other.run()
        database.execute("insert into t values (1)")
        database.await_written(capture)
    assert len(database.records(capture, "t")) == 1


def test_a_role_with_no_more_than_the_script_gives_it_captures(database, unique):
    database.execute("create table t (id int primary key)")
    database.execute("create table secret (id int primary key)")
    database.execute("insert into t values (1)")
    capture = database.capture("t")
    role = f"role_{unique}"
    with connect(database.settings.dsn(), "test") as connection:
        script = role_script(Source(connection, capture, ""), role)
    database.execute(script.replace("…", "chosen"))
    address = urlsplit(database.settings.dsn().value)
    dsn = address._replace(netloc=f"{role}:chosen@{address.hostname}:{address.port}").geturl()
    theirs = replace(database.settings, postgres=Secret(dsn))
    limited = Database.__new__(Database)
    limited.settings, limited.schema, limited.connection = theirs, database.schema, database.connection
    with limited.running(capture):
        database.execute("insert into t values (2)")
    assert [each.after["id"] for each in database.records(capture, "t")] == [1, 2]
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(f"select * from {database.schema}.secret")
    wider = database.capture("t", "secret")
    with pytest.raises(CaptureError, match="penstock capture role"), limited.running(wider):
        pass
    database.drop(capture)
    database.execute(f'drop owned by "{role}"; drop role "{role}"')


def test_what_can_not_be_captured_is_said(database):
    database.execute("create view v as select 1 as id")
    with pytest.raises(CaptureError, match="there is no table"), database.running(database.capture("nobody")):
        pass
    with pytest.raises(CaptureError, match="is no table"), database.running(database.capture("v")):
        pass


def test_records_without_a_position_are_not_written_over(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1)")
    capture = database.capture("t")
    with database.running(capture):
        pass
    Store(database.settings).remove(capture.name)
    database.drop(capture)
    again = database.capture("t")
    refused = pytest.raises(CaptureError, match="has records, and the capture has no position")
    with refused, database.running(again):
        pass


def test_a_topic_that_was_made_again_is_noticed(database):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1), (2)")
    capture = database.capture("t")
    with database.running(capture):
        pass
    broker, topic = Broker(database.settings), capture.topic(f"{database.schema}.t")
    broker.delete(topic)
    _await(lambda: not broker.topics([topic]))
    with pytest.raises(CaptureError, match="deleted and made again"), database.running(capture):
        pass
    with database.running(capture, snapshot_again=True):
        pass
    assert [each.after["id"] for each in database.records(capture, "t")] == [1, 2]
    broker.grow(topic, 2)
    with pytest.raises(CaptureError, match="has 2 partitions, 1 declared"), database.running(capture):
        pass


def test_partitions_that_are_added_while_it_runs_are_noticed(database, monkeypatch):
    monkeypatch.setattr(batch_writer, "_LOOK_AT_TOPICS", 0.5)
    database.execute("create table t (id int primary key)")
    capture = database.capture("t")

    def grow():
        with database.running(capture):
            Broker(database.settings).grow(capture.topic(f"{database.schema}.t"), 2)
            time.sleep(3)

    with pytest.raises(CaptureError, match="has 2 partitions, 1 declared"):
        grow()


def test_an_idle_capture_moves_on_and_lets_postgres_forget_its_log(database):
    database.execute("create table t (id int primary key)")
    database.execute("create table other (id int)")
    capture = database.capture("t", heartbeat="1 second")
    with database.running(capture):
        database.execute("insert into t values (1)")
        before = status(database.settings, capture.name)
        for _ in range(5):
            database.execute("insert into other select generate_series(1, 1000)")
        end = database.end()
        database.await_written(capture)
        found = status(database.settings, capture.name)
    assert before.state == found.state == "running"
    assert found.behind is not None
    assert Store(database.settings).position(capture.name).lsn >= end
    assert found.snapshot == "done"


def test_pause_and_resume(database):
    database.execute("create table t (id int primary key)")
    capture = database.capture("t")
    store = Store(database.settings)
    with database.running(capture):
        store.pause(capture.name, paused=True)
        _await(lambda: store.state(capture.name).state == "paused")
        database.execute("insert into t values (1)")
        assert database.records(capture, "t") == []
        store.pause(capture.name, paused=False)
        database.await_written(capture)
    assert len(database.records(capture, "t")) == 1


def _await(is_so):
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_addresses_stay_out_of_errors():
    with pytest.raises(Exception, match="can't reach") as error:
        connect(Secret("postgresql://u:hunter2@127.0.0.1:1/x"), "test")
    assert "hunter2" not in str(error.value)
