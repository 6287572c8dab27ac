"""Captures of MariaDB: what is its own, and where it refuses to go on."""

import time
from dataclasses import replace

import pytest
from tests.capture.mariadb import CONNECTION, MariaDatabase
from tests.capture.running import ops, records, rows
from tests.mariadb_server import MariaDb
from typer.testing import CliRunner

from penstock.capture import Outbox, Store, Wishes
from penstock.capture.database import make_session, open_database
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.capture.status import status
from penstock.cli.main import app
from penstock.errors import CaptureError, ChangesLostError


@pytest.fixture
def own(settings, tmp_path, unique):
    """A server of a test's own: it is reset, or its log purged."""
    server = MariaDb(tmp_path / "own")
    server.install()
    made = MariaDatabase(settings, f"o{unique}", server)
    yield made
    made.close()
    server.stop()


def purge(own):
    """Purge all but the newest file; the server keeps one while it takes somebody for its reader."""
    own.execute("flush binary logs")
    last = own.execute("show master status").fetchone()[0]
    deadline = time.monotonic() + 30
    while own.execute("show binary logs").fetchone()[0] != last:
        assert time.monotonic() < deadline
        own.execute(f"purge binary logs to '{last}'")
        time.sleep(0.2)


def test_the_source_block_is_that_of_debeziums_connector(maria):
    maria.execute("create table t (id int primary key)")
    maria.execute("insert into t values (1)")
    capture = maria.capture("t")
    with maria.running(capture):
        maria.execute("insert into t values (2), (3)")
        gtid = maria.execute("select @@gtid_binlog_pos").fetchone()[0]
    read, one, two = (each.value["source"] for each in maria.records(capture, "t"))
    assert list(one) == [
        *("version", "connector", "name", "ts_ms", "snapshot", "db", "sequence", "ts_us", "ts_ns", "table"),
        *("server_id", "gtid", "file", "pos", "row", "thread", "query"),
    ]
    assert (one["connector"], one["db"], one["table"]) == ("mariadb", maria.schema, "t")
    assert (one["server_id"], one["gtid"], one["snapshot"]) == (7, gtid, "false")
    assert (one["row"], two["row"]) == (0, 1)
    assert one["pos"] == two["pos"]
    assert one["file"].startswith("shop-bin.0")
    assert (read["server_id"], read["gtid"], read["snapshot"]) == (0, None, "true")


def test_the_log_goes_on_in_another_file(maria):
    maria.execute("create table t (id int primary key)")
    capture = maria.capture("t")
    for turn in range(3):
        with maria.running(capture):
            maria.execute("flush binary logs")
            maria.execute(f"insert into t values ({turn})")
            maria.execute("flush binary logs")
        maria.execute("flush binary logs")
    assert [each.after["id"] for each in maria.records(capture, "t")] == [0, 1, 2]


def test_a_compressed_log(maria):
    maria.execute("create table t (id int primary key, text text)")
    maria.execute("set global log_bin_compress = on")
    try:
        capture = maria.capture("t")
        with maria.running(capture):
            maria.execute("insert into t values (1, repeat('x', 5000))")
            maria.execute("update t set text = repeat('y', 5000)")
            maria.execute("delete from t")
    finally:
        maria.execute("set global log_bin_compress = off")
    assert ops(maria.records(capture, "t")) == ["c", "u", "d", None]


def test_savepoints_that_the_log_has_because_of_another_engine(maria):
    maria.execute("create table t (id int primary key)")
    maria.execute("create table m (id int) engine = MyISAM")
    capture = maria.capture("t")
    with maria.running(capture):
        maria.execute(
            "begin; insert into t values (1); savepoint `a b`; insert into m values (1); "
            "insert into t values (2); rollback to `a b`; insert into t values (3); commit"
        )
        maria.execute("begin; insert into t values (4); insert into m values (4); rollback")
        maria.execute("insert into t values (5)")
    assert [each.after["id"] for each in maria.records(capture, "t")] == [1, 3, 5]


def test_a_large_transaction_is_written_in_pieces_and_once(maria):
    """It is larger than what is held in memory, and the session breaks in its middle."""
    maria.execute("create table t (id int primary key, text varchar(200))")
    capture = maria.capture("t", transactions=True)
    with maria.running(capture):
        pass
    maria.execute("insert into t select seq, repeat('x', 150) from seq_1_to_70000")
    maria.execute("insert into t values (70001, 'last')")
    written = []

    def report(position):
        written.append(position)
        if position.index:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        make_session(maria.settings, capture, Wishes(), report).run()
    assert 0 < written[-1].index < 70000
    with maria.running(capture):
        pass
    found = maria.records(capture, "t")
    assert [each.after["id"] for each in found] == [*range(1, 70002)]
    assert [each.value["transaction"]["total_order"] for each in found[:70000]] == [*range(1, 70001)]
    begun = [each.value for each in records(maria.settings, capture.topic("transaction"))]
    assert [(each["status"], each["event_count"]) for each in begun] == [
        ("BEGIN", None), ("END", 70000), ("BEGIN", None), ("END", 1),
    ]  # fmt: skip


def test_tables_that_are_dropped_made_again_and_exchanged(maria):
    maria.execute("create table t (id int primary key, a int)")
    maria.execute("insert into t values (1, 1), (2, 2)")
    capture = maria.capture("t")
    with maria.running(capture):
        maria.execute("drop table t")
        maria.execute("create table t (id bigint primary key, b text)")
        maria.execute("insert into t values (3, 'x')")
    assert rows(maria.records(capture, "t")) == [{"id": 3, "b": "x"}]
    with maria.running(capture):
        maria.execute("create or replace table t (id bigint primary key, b text) select 4 as id, 'y' as b")
    assert rows(maria.records(capture, "t")) == [{"id": 4, "b": "y"}]
    maria.execute("create table `other` (id bigint primary key, c text)")
    maria.execute("insert into `other` values (5, 'z'), (6, 'z')")
    with maria.running(capture):
        maria.execute("/* a tool */ rename table t to old, `other` to t")
        maria.execute("insert into t values (7, 'w')")
    found = sorted(each["id"] for each in rows(maria.records(capture, "t")))
    assert found == [5, 6, 7]


def test_a_key_of_other_columns_has_all_rows_written_again(maria):
    maria.execute("create table t (id int primary key, other int not null)")
    maria.execute("insert into t values (1, 10), (2, 20)")
    capture = maria.capture("t")
    with maria.running(capture):
        maria.execute("alter table t drop primary key, add primary key (other)")
        maria.execute("insert into t values (3, 30)")
    found = rows(maria.records(capture, "t"))
    assert sorted(each["id"] for each in found) == [1, 2, 3]


def test_a_table_is_added_and_read_again_on_request(maria):
    maria.execute("create table a (id int primary key)")
    maria.execute("create table b (id int primary key)")
    maria.execute("insert into a values (1), (2), (3)")
    maria.execute("insert into b values (7)")
    capture = maria.capture("a")
    with maria.running(capture):
        pass
    capture = maria.capture("a", "b")
    with open_database(maria.settings, capture) as found:
        found.request(SnapshotRequest(f"{maria.schema}.a", ("1",), ("2",)))
        with pytest.raises(CaptureError, match="is not a key"):
            found.request(SnapshotRequest(f"{maria.schema}.a", ("1", "2")))
    with maria.running(capture):
        pass
    with maria.running(capture):
        pass
    assert [each.key["id"] for each in maria.records(capture, "a")] == [1, 2, 3, 2]
    assert ops(maria.records(capture, "b")) == ["r"]


def test_an_outbox(maria):
    maria.execute(
        "create table outbox (id varchar(40) primary key, aggregatetype text, aggregateid text, type text, "
        "payload json)"
    )
    capture = maria.capture(outbox=Outbox(f"{maria.schema}.outbox"))
    topic = f"events.{maria.schema}"
    with maria.running(capture):
        maria.execute(f"insert into outbox values ('i', '{topic}', 'k', 'made', '{{\"a\": 1}}')")
        maria.execute("delete from outbox")
    (event,) = records(maria.settings, topic)
    assert (event.key, event.value) == (b"k", {"a": 1})
    assert event.headers == {"id": b"i", "type": b"made"}


@pytest.mark.long
def test_a_purged_log_is_changes_lost_and_a_new_snapshot_helps(own):
    own.execute("create table t (id int primary key)")
    own.execute("insert into t values (1), (2)")
    capture = own.capture("t")
    with own.running(capture):
        pass
    own.execute("delete from t where id = 1")
    purge(own)
    with pytest.raises(ChangesLostError, match="has purged shop-bin"), own.running(capture):
        pass
    with own.running(capture, snapshot_again=True):
        own.execute("insert into t values (3)")
    assert sorted(each["id"] for each in rows(own.records(capture, "t"))) == [2, 3]
    own.execute("reset master")
    own.execute("insert into t values (4)")
    with pytest.raises(CaptureError, match=r"reset|another server|set back"), own.running(capture):
        pass
    with own.running(own.capture("t", snapshot="when-needed")):
        pass
    assert sorted(each["id"] for each in rows(own.records(capture, "t"))) == [2, 3, 4]


def test_another_server_is_refused(maria, own):
    maria.execute("create table t (id int primary key)")
    maria.execute("insert into t values (1)")
    capture = maria.capture("t")
    with maria.running(capture):
        pass
    own.execute(f"create database {maria.schema}")
    own.execute(f"create table {maria.schema}.t (id int primary key)")
    moved = MariaDatabase.__new__(MariaDatabase)
    moved.settings, moved.schema, moved.server = own.settings, maria.schema, own.server
    moved.connection = own.connection
    with pytest.raises(CaptureError, match=r"another|purged|set back"), moved.running(capture):
        pass


def test_what_the_log_can_not_show_is_refused(maria):
    maria.execute("create table t (id int primary key, a int)")
    maria.execute("insert into t values (1, 1)")
    for setting, statement, said in (
        ("binlog_row_image = MINIMAL", "update t set a = 2", "lacks columns"),
        ("binlog_format = STATEMENT", "update t set a = 3", "as a statement"),
    ):
        capture = maria.capture("t", name=f"{maria.schema}_{len(said)}")
        with maria.running(capture):
            pass
        name = setting.partition(" ")[0]
        maria.execute(f"set session {setting}")
        maria.execute(statement)
        maria.execute(f"set session {name} = default")
        with pytest.raises(CaptureError, match=said), maria.running(capture):
            pass


def test_a_change_by_a_view_that_is_logged_as_a_statement_is_refused(maria):
    maria.execute("create table t (id int primary key); create view v as select id from t")
    capture = maria.capture("t")
    with maria.running(capture):
        maria.execute("insert into v values (1)")
    maria.execute("set session binlog_format = STATEMENT; insert into v values (2)")
    with pytest.raises(CaptureError, match="as a statement"), maria.running(capture):
        pass


def test_a_unique_text_has_a_column_of_the_servers_own(maria):
    maria.execute("create table t (id int primary key, text text, unique (text))")
    maria.execute("insert into t values (1, 'a')")
    capture = maria.capture("t")
    with maria.running(capture):
        maria.execute("insert into t values (2, 'b'), (3, null); update t set text = 'c' where id = 1")
        maria.execute("alter table t add more int; insert into t values (4, 'd', 5)")
    found = maria.records(capture, "t")
    assert found[-1].after == {"id": 4, "text": "d", "more": 5}
    assert sorted((each["id"], each["text"]) for each in rows(found)) == [
        (1, "c"), (2, "b"), (3, None), (4, "d"),
    ]  # fmt: skip


def test_transactions_of_two_phases_are_refused(maria):
    maria.execute("create table t (id int primary key)")
    capture = maria.capture("t")
    with maria.running(capture):
        pass
    maria.execute("xa start 'x'; insert into t values (1); xa end 'x'; xa prepare 'x'; xa commit 'x'")
    with pytest.raises(CaptureError, match="two phases"), maria.running(capture):
        pass


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("binlog_row_metadata", "NO_LOG", "binlog_row_metadata is 'NO_LOG'"),
        ("binlog_row_image", "MINIMAL", "binlog_row_image is 'MINIMAL'"),
        ("binlog_format", "MIXED", "binlog_format is 'MIXED'"),
    ],
)
def test_settings_that_would_not_work_are_refused(maria, setting, value, said):
    maria.execute("create table t (id int primary key)")
    before = maria.execute(f"select @@global.{setting}").fetchone()[0]
    maria.execute(f"set global {setting} = {value}")
    try:
        with (
            pytest.raises(CaptureError, match=said),
            open_database(maria.settings, maria.capture("t")) as found,
        ):
            found.check()
    finally:
        maria.execute(f"set global {setting} = {before}")


def test_tables_that_would_not_work_are_refused(maria):
    maria.execute("create table m (id int primary key) engine = MyISAM")
    maria.execute("create view v as select 1 as id")
    maria.execute("create table c (id int primary key, t text character set dec8)")
    maria.execute("create table p (id int primary key)")
    maria.execute(
        "create table f (id int primary key, p int, foreign key (p) references p (id) on delete cascade)"
    )
    for table, said in (
        ("f", "changes rows by itself"),
        ("m", "MyISAM"),
        ("v", "is a view"),
        ("c", "'dec8'"),
        ("no", "there is no table"),
    ):
        with (
            pytest.raises(CaptureError, match=said),
            open_database(maria.settings, maria.capture(table)) as found,
        ):
            found.check()


def test_a_user_with_no_more_rights_than_printed_is_enough(maria, monkeypatch):
    maria.execute("create table t (id int primary key)")
    maria.execute("insert into t values (1)")
    capture = maria.capture("t")
    with open_database(maria.settings, capture) as found:
        script = found.role(maria.schema)
    for line in script.replace("…", "secret").splitlines():
        if not line.startswith("--"):
            maria.execute(line.rstrip(";"))
    dsn = f"mysql://{maria.schema}:secret@127.0.0.1:{maria.server.port}/{maria.schema}"
    maria.settings = replace(maria.settings, connections={CONNECTION: {"dsn": dsn}})
    with maria.running(capture):
        maria.execute("insert into t values (2)")
    assert ops(maria.records(capture, "t")) == ["r", "c"]
    maria.execute(f"revoke binlog monitor on *.* from `{maria.schema}`@'%'")
    with pytest.raises(CaptureError, match="does not let the capture in") as error, maria.running(capture):
        pass
    assert "secret" not in str(error.value)


def test_the_commands(maria, monkeypatch, tmp_path):
    maria.execute(
        "create table orders (id bigint unsigned primary key, price decimal(9, 2), made datetime(6))"
    )
    for name, value in maria.settings.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    name, table = maria.schema, f"{maria.schema}.orders"
    run = lambda *words: CliRunner().invoke(app, ["capture", *words])  # noqa: E731
    made = run("add", name, "--connection", CONNECTION, "--tables", table)
    assert made.exit_code == 0, made.output
    capture = Store(maria.settings).get(name)
    with maria.running(capture):
        maria.execute("insert into orders values (1, 2.5, now())")
        assert status(maria.settings, name).state == "running"
    found = status(maria.settings, name)
    assert (found.state, found.changes, found.snapshot, found.error) == ("stopped", 1, "done", "")
    assert found.behind is not None
    assert "id: Annotated[Decimal, Precision(20, 0)]" in run("classes", name).output
    assert "GRANT REPLICATION SLAVE" in run("role", name).output
    assert run("snapshot", name, table).exit_code == 0
    assert run("remove", name, "--yes").exit_code == 0
    assert not Store(maria.settings).has(name)
