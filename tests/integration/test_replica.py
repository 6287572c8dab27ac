"""A copy of a database that follows it through the log."""

import random
import threading
import time
from pathlib import Path

import psycopg
import pytest
from copying import NAME, Copy, checksum
from tests.capture.process import CaptureProcess

from penstock.errors import FencedError, ReplicaError, ReplicaHeldError
from penstock.log import Broker
from penstock.replica import Replica
from penstock.replica.status import status

TYPES = Path(__file__).parents[1] / "capture" / "scenarios" / "types.sql"


@pytest.fixture
def copy(database, unique):
    made = Copy(database, f"c{unique}")
    yield made
    made.close()


def same(database, copy, table, key="id"):
    """Whether source and copy have the same rows, to the last digit."""
    settings = "set timezone = 'UTC'; set extra_float_digits = 3; set lc_monetary = 'C'"
    database.execute(settings)
    copy.execute(settings)
    ours, theirs = checksum(database.connection, f"{database.schema}.{table}", key), copy.sum(table, key)
    assert theirs == ours
    return ours[0]


def test_rows_changes_and_deletions_arrive(database, copy):
    database.execute("create table t (id int primary key, name text not null, price numeric(12, 2))")
    database.execute("insert into t select i, 'n' || i, i * 1.5 from generate_series(1, 1000) i")
    capture = database.capture("t")
    with database.running(capture), copy.following(capture):
        database.execute("update t set name = E'tab\\t line\\n back\\\\ é' where id % 3 = 0")
        database.execute("delete from t where id % 5 = 0")
        database.execute("update t set id = id + 5000 where id % 7 = 0")
        database.execute("insert into t values (9000, 'new', null)")
    assert same(database, copy, "t") > 700
    assert copy.execute("select bool_and(_lsn > '0/0') from copy.t").fetchone()[0]
    with pytest.raises(Exception, match="not-null"):
        copy.execute("insert into copy.t values (1, null, null, '0/0')")
    found = status(copy.settings, copy.name, NAME)
    assert (found.state, found.lag, found.seconds) == ("stopped", 0, 0.0)


KINDS = """
select atttypid::regtype::text from pg_attribute where attrelid = 'copy.kinds'::regclass and attname = %s
"""


def test_every_type_arrives_to_the_last_digit(database, copy):
    database.execute(TYPES.read_text().partition("-- changes")[0])
    database.execute("create table kinds (like everything)")
    database.execute("alter table kinds drop varbit_, drop varbit_1, drop varbit_20, add primary key (id)")
    found = database.execute("select * from kinds limit 0").description
    names = ", ".join(each.name for each in found)
    database.execute(f"insert into kinds select {names} from everything")
    capture = database.capture("kinds")
    with database.running(capture), copy.following(capture):
        database.execute("select fill()")
        database.execute(f"insert into kinds select {names} from everything where id > 4")
        database.execute("update kinds set text_ = text_ || '!' where id < 3")
    assert same(database, copy, "kinds") == 8
    kinds = [copy.execute(KINDS, [each]).fetchone()[0] for each in ("mood_", "price_", "pair_", "moods")]
    assert kinds == ["copy.mood", "numeric", "text", "copy.mood[]"]


def test_shapes_follow_and_what_no_record_has_is_read_again(database, copy):
    database.execute("create type mood as enum ('sad', 'ok')")
    database.execute("create table t (id int primary key, price numeric(8, 1), mood mood, old text not null)")
    database.execute("insert into t select i, i, 'ok', 'x' from generate_series(1, 500) i")
    capture = database.capture("t")
    with database.running(capture), copy.following(capture):
        copy.await_all(capture)
        database.execute("alter table t add column added text, add column filled int not null default 7")
        database.execute("update t set added = 'a' || id where id < 10")
        copy.await_all(capture)
        database.execute("alter table t drop column old, alter column price type numeric(12, 4)")
        database.execute("alter type mood add value 'glad' after 'sad'")
        database.execute("update t set price = 1.2345, mood = 'glad' where id between 5 and 20")
        database.execute("alter table t alter column added type int using length(added)")
        _until(lambda: 'ALTER COLUMN "added" TYPE' in " ".join(copy.lines))
        database.execute("update t set added = 77 where id = 3")
    assert same(database, copy, "t") == 500
    labels = copy.execute("select enum_range(null::copy.mood)::text").fetchone()[0]
    assert labels == "{sad,glad,ok}"


def test_a_table_whose_key_gets_other_columns_is_filled_again(database, copy):
    database.execute("create table t (id int, code text not null, n int, constraint t_key primary key (id))")
    database.execute("insert into t select i, 'c' || i, 0 from generate_series(1, 300) i")
    capture = database.capture("t")
    with database.running(capture), copy.following(capture):
        copy.await_all(capture)
        database.execute("alter table t drop constraint t_key, add primary key (code, id)")
        database.execute("update t set n = 1 where id < 50")
        database.execute("delete from t where id > 290")
        _until(lambda: "PRIMARY KEY" in " ".join(copy.lines))
        copy.await_all(capture)
        database.execute("alter table t alter column id type text")
        database.execute("update t set n = 2 where code < 'c2'")
        _until(lambda: 'ALTER COLUMN "id" TYPE text' in " ".join(copy.lines))
    assert same(database, copy, "t") == 290


def test_truncates_large_values_and_partitioned_tables(database, copy):
    database.execute(
        "create table parts (id int, day date, big text, primary key (id, day)) partition by range (day)"
    )
    database.execute("create table p1 partition of parts for values from ('2026-01-01') to ('2026-02-01')")
    database.execute("create table p2 partition of parts for values from ('2026-02-01') to ('2026-03-01')")
    database.execute("create table t (id int primary key)")
    big = "(select string_agg(md5(random()::text), '') from generate_series(1, 400))"
    database.execute(
        f"insert into parts select i, '2026-01-01'::date + i, {big} from generate_series(0, 50) i"
    )
    database.execute("insert into t select generate_series(1, 2000)")
    capture = database.capture("parts", "t", partitions=3)
    with database.running(capture), copy.following(capture):
        database.execute("update parts set id = id where id % 2 = 0")
        database.execute("update parts set day = day + 20 where id < 5")
        database.execute("begin; truncate t; insert into t select generate_series(5, 9); commit")
    assert same(database, copy, "parts", "id, day") == 51
    assert same(database, copy, "t") == 5


@pytest.mark.long
def test_what_can_not_be_copied_is_refused_with_the_reason(database, copy):
    database.execute("create table keyless (id int)")
    database.execute("create table bits (id int primary key, b varbit)")
    database.execute("create table t (id int primary key)")
    for table, words in (("keyless", "no primary key"), ("bits", "leading zeros")):
        capture = database.capture(table, name=f"{database.schema}_{table}")
        with database.running(capture), pytest.raises(ReplicaError, match=words), copy.following(capture):
            pass
    flat = database.capture("t", name=f"{database.schema}_flat", format="flat-json")
    with pytest.raises(ReplicaError, match="format 'flat-json'"):
        Replica("x", flat.name).check(flat)
    capture = database.capture("t")
    copy.execute("create schema copy; create table copy.t (id int primary key)")
    with (
        database.running(capture),
        pytest.raises(ReplicaError, match="did not make"),
        copy.following(capture),
    ):
        pass
    copy.execute("drop table copy.t")
    with database.running(capture), copy.following(capture):
        pass
    with pytest.raises(ReplicaError, match="of capture"), copy.following(capture, "other"):
        pass
    copy.execute("drop table copy.t")
    with database.running(capture), pytest.raises(ReplicaError, match="begin-anew"), copy.following(capture):
        pass
    database.execute("insert into t values (1)")
    with database.running(capture), copy.following(capture, begin_anew=True):
        pass
    assert same(database, copy, "t") == 1


def test_a_topic_that_was_made_again_and_a_long_absence_are_refused(database, copy):
    database.execute("create table t (id int primary key)")
    database.execute("insert into t values (1), (2)")
    capture = database.capture("t")
    with database.running(capture), copy.following(capture):
        pass
    copy.execute("update penstock.replicas set fresh = now() - interval '8 days'")
    with pytest.raises(ReplicaError, match=r"keep deletions for 7 days.*begin-anew"), copy.following(capture):
        pass
    copy.execute("update penstock.replicas set fresh = now()")
    topic = capture.topic(f"{database.schema}.t")
    Broker(database.settings).delete(topic)
    Broker(database.settings).ensure(topic, 1, capture.topic_config(keyed=True))
    with pytest.raises(ReplicaError, match=r"made again.*begin-anew"), copy.following(capture):
        pass
    assert status(copy.settings, copy.name, NAME).state == "failed"


def test_one_writer_at_a_time(database, copy, monkeypatch):
    monkeypatch.setattr("penstock.replica.ledger._PATIENCE", 1.0)
    database.execute("create table t (id int primary key)")
    capture = database.capture("t")
    with database.running(capture), copy.following(capture):
        copy.await_all(capture)
        assert status(copy.settings, copy.name, NAME).state == "running"
        with pytest.raises(ReplicaHeldError, match="runs already: process"), copy.following(capture):
            pass
    with pytest.raises(FencedError):
        _taken_over(database, copy, capture)
    assert copy.execute("select count(*) from copy.t").fetchone()[0] == 0


def _taken_over(database, copy, capture):
    with database.running(capture), copy.following(capture):
        copy.await_all(capture)
        copy.execute("update penstock.replicas set epoch = epoch + 1")
        database.execute("insert into t values (1)")


class ReplicaProcess(CaptureProcess):
    """The command `penstock replica run`, as a process that can be killed."""

    def __init__(self, copy, capture, folder):
        super().__init__(copy.settings, capture.name, folder)
        words = ["replica", "run", copy.name, "--capture", capture.name, "--to", NAME, "--schema", "copy"]
        self._command = [*self._command[:3], *words]
        self.log = folder / "replica.log"


@pytest.mark.long
@pytest.mark.timeout(240)
def test_killed_at_random_moments_it_ends_equal(database, copy, tmp_path):
    database.execute("create table t (id int primary key, n int, name text)")
    database.execute("insert into t select i, 0, 'n' || i from generate_series(1, 30000) i")
    capture, process = (
        database.capture("t", partitions=2),
        ReplicaProcess(copy, database.capture("t", partitions=2), tmp_path),
    )
    stopped, chance = threading.Event(), random.Random(7)
    writer = threading.Thread(target=_write, args=(database, stopped))
    with database.running(capture):
        writer.start()
        try:
            for _ in range(6):
                process.start()
                time.sleep(chance.uniform(1.5, 3.5))
                process.kill()
            stopped.set()
            writer.join()
            process.start()
            copy.await_all(capture)
            assert process.stop() == 0, process.log.read_text()
        finally:
            stopped.set()
            process.kill()
    assert same(database, copy, "t") > 10_000
    assert "stopped" in process.log.read_text()


def _write(database, stopped):
    chance = random.Random(1)
    with psycopg.connect(database.settings.dsn().value, autocommit=True) as connection:
        connection.execute(f"set search_path to {database.schema}")
        while not stopped.wait(0.005):
            at = chance.randrange(1, 40_000)
            connection.execute("update t set n = n + 1 where id between %s and %s", [at, at + 300])
            connection.execute("delete from t where id between %s and %s", [at, at + 20])
            connection.execute(
                "insert into t select i, 1, 'again' from generate_series(%s::int, %s::int) i", [at, at + 10]
            )


def _until(is_so, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.1)
