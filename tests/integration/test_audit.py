"""A copy that was damaged on purpose: every row is named, and repaired through the log."""

import json
import os
import subprocess
import sys
import threading

import psycopg
import pytest
from copying import NAME, Copy, checksum

from penstock.capture import Store
from penstock.capture.replication import connect
from penstock.capture.requests import send
from penstock.capture.slot import Source
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.errors import ReplicaError, TryAgainError


@pytest.fixture
def copy(database, unique):
    made = Copy(database, f"c{unique}")
    yield made
    made.close()


def found_in(report):
    return {(each.kind, each.key): each.columns for each in report.differences}


def write(database, stopped):
    """Change rows all the while, but not those that tests damage."""
    with psycopg.connect(database.settings.dsn().value, autocommit=True) as connection:
        connection.execute(f"set search_path to {database.schema}")
        turn = 0
        while not stopped.wait(0.01):
            turn += 1
            at = turn * 37 % 5000 + 5000
            connection.execute("update t set n = n + 1 where id between %s and %s", [at, at + 60])
            connection.execute("delete from t where id = %s", [at])
            connection.execute("insert into t values (%s, 0, 'again') on conflict do nothing", [at - 37])


@pytest.mark.timeout(240)
def test_damage_is_named_and_repaired_while_writes_go_on(database, copy):
    database.execute("create table t (id int primary key, n int, name text)")
    database.execute("insert into t select i, 0, 'n' || i from generate_series(1, 12000) i")
    database.execute("create table u (a text, b int, c timestamptz, primary key (a, b))")
    database.execute("insert into u select 'k''' || i % 9, i, now() from generate_series(1, 3000) i")
    capture = database.capture("t", "u")
    stopped = threading.Event()
    writer = threading.Thread(target=write, args=(database, stopped))
    with database.running(capture), copy.following(capture):
        copy.await_all(capture)
        writer.start()
        try:
            assert copy.audited(capture, size=1000).is_equal
            copy.execute("delete from copy.t where id in (1, 777, 4000)")
            copy.execute("update copy.t set name = 'wrong', n = -1 where id = 2000")
            copy.execute("insert into copy.t values (-5, 1, 'x', '0/0'), (99999, 1, 'x', '0/0')")
            copy.execute("update copy.u set c = c + interval '1 microsecond' where b = 17")
            copy.execute("insert into copy.u values ('k''1', 17000, null, '0/0')")
            report, left = copy.audited(capture, size=1000, repair=True)
        finally:
            stopped.set()
            writer.join()
        copy.await_all(capture)
    assert found_in(report) == {
        ("missing", ("1",)): (),
        ("missing", ("777",)): (),
        ("missing", ("4000",)): (),
        ("different", ("2000",)): ("n", "name"),
        ("unexpected", ("-5",)): (),
        ("unexpected", ("99999",)): (),
        ("different", ("k'8", "17")): ("c",),
        ("unexpected", ("k'1", "17000")): (),
    }
    assert left.is_equal
    for table, key in (("t", "id"), ("u", "a, b")):
        ours = checksum(database.connection, f"{database.schema}.{table}", key)
        assert copy.sum(table, key) == ours


def test_a_key_that_the_source_has_by_then_is_not_deleted(database):
    database.execute("create table t (id char(4) primary key)")
    database.execute("insert into t values ('a'), ('b')")
    capture, path = database.capture("t"), f"{database.schema}.t"
    with database.running(capture), connect(database.settings.dsn(), "test") as connection:
        source = Source(connection, capture, "")
        database.execute("insert into t values ('c')")
        send(SnapshotRequest(path, ("x",), ("x",), (("b",), ("c",), ("gone",))), source)
        database.await_written(capture)
    found = [each for each in database.records(capture, "t") if each.value is None or each.op == "d"]
    assert [each.key for each in found] == [{"id": "gone"}] * 2
    assert not Store(database.settings).position(capture.name).tables[path].absent


@pytest.mark.long
def test_the_command_ends_with_65_and_a_repair_with_0(database, copy):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t select generate_series(1, 100)")
    capture = database.capture("t")

    def command(*words):
        command = [sys.executable, "-m", "penstock.cli", "replica", *words, copy.name, "--to", NAME]
        environment = os.environ | copy.settings.environment()
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    with database.running(capture), copy.following(capture):
        copy.await_all(capture)
        assert command("audit").returncode == 0
        copy.execute("delete from copy.t where id = 5")
        done = command("audit", "--json")
        assert done.returncode == 65, done.stderr
        (table,) = json.loads(done.stdout)["tables"]
        assert [(each["kind"], each["key"]) for each in table["differences"]] == [("missing", ["5"])]
        done = command("audit", "--repair")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "missing" in done.stdout
        assert "running" in command("status").stdout
        with pytest.raises(ReplicaError, match="has no table"):
            copy.audited(capture, tables=("public.other",))
    copy.execute("delete from copy.t where id = 6")
    with pytest.raises(TryAgainError, match="has not come"):
        copy.audited(capture, patience=1.0)
    done = command("remove", "--yes", "--drop-tables")
    assert done.returncode == 0, done.stderr
    assert copy.tables() == []
    assert command("status").returncode == 78
