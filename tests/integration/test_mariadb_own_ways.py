"""What a MariaDB may be set up or asked to do that a capture would not see: it is refused, or mended."""

from dataclasses import replace

import pytest
from tests.mariadb_server import MariaDb, require_mariadb

from penstock.capture.capture import Capture
from penstock.capture.mysql.catalogue import Catalogue
from penstock.capture.mysql.chunks import Chunk, is_ordered
from penstock.capture.mysql.server import Server
from penstock.capture.mysql.source import Source
from penstock.capture.mysql.table_map import MappedColumn, TableMap
from penstock.errors import CaptureError
from penstock.settings import Secret


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A server that keeps names in small letters, and logs not all of its databases."""
    require_mariadb()
    server = MariaDb(
        tmp_path_factory.mktemp("odd"), "--lower-case-table-names=1", "--binlog-ignore-db=quiet",
        "--skip-log-slave-updates", "--plugin-load-add=auth_pam", "--plugin-maturity=experimental",
    )  # fmt: skip
    server.install()
    yield server
    server.stop()


@pytest.fixture
def database(odd):
    with odd.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("create or replace database shop character set utf8mb4")
        cursor.execute("use shop")
        yield cursor


@pytest.fixture
def server(odd):
    with Server(Secret(odd.dsn)) as made:
        yield made


def test_a_foreign_key_that_cascades_is_seen_by_who_may_only_read(odd, database):
    database.execute("create table parents (id int primary key)")
    for name, rule in (("kept", "on delete restrict"), ("gone", "on delete cascade on update set null")):
        database.execute(
            f"create table {name} (id int primary key, parent int comment 'on delete cascade', "
            f"constraint `by ``{name}` foreign key (parent) references parents (id) {rule})"
        )
    database.execute("create or replace user reader@'%' identified by 'päßwörd'")
    for name in ("parents", "kept", "gone"):
        database.execute(f"grant select on {name} to reader@'%'")
    with Server(Secret(f"mariadb://reader:p%C3%A4%C3%9Fw%C3%B6rd@127.0.0.1:{odd.port}")) as server:
        catalogue = Catalogue(server)
        assert catalogue.shape("shop.kept").key == ("id",)
        with pytest.raises(CaptureError, match=r"'by `gone' of 'shop\.gone' changes rows by itself"):
            catalogue.shape("shop.gone")
        catalogue.refuse_cascades("shop.not_there")


def test_a_table_is_spelled_as_the_server_spells_it(database, server):
    database.execute("create table Orders (id int primary key)")
    assert Catalogue(server).shape("shop.orders").key == ("id",)
    with pytest.raises(CaptureError, match=r"'shop\.Orders' is shop\.orders in the server"):
        Catalogue(server).shape("shop.Orders")


def test_a_database_that_is_not_logged_is_refused(database, server):
    database.execute("create or replace database quiet")
    database.execute("create table quiet.t (id int primary key)")
    database.execute("create table t (id int primary key)")
    Source(server, Capture("shop", ("shop.t",)), "n").check()
    with pytest.raises(CaptureError, match="does not log database 'quiet'"):
        Source(server, Capture("shop", ("shop.t", "quiet.t")), "n").check()


def test_a_replica_that_logs_nothing_of_its_primary_is_refused(database, server):
    database.execute("create table t (id int primary key)")
    database.execute("set global gtid_slave_pos = '5-6-7'")
    try:
        with pytest.raises(CaptureError, match="log_slave_updates"):
            Source(server, Capture("shop", ("shop.t",)), "n").check()
    finally:
        database.execute("set global gtid_slave_pos = ''")


def test_a_key_with_a_set_is_read_at_once(database, server):
    database.execute("create table t (s set('b', 'a') primary key)")
    database.execute("insert into t values ('a'), ('b'), ('a,b')")
    shape = Catalogue(server).shape("shop.t")
    assert not is_ordered(shape)
    assert sorted(Chunk(shape, 1).read(server)) == [[b"a"], [b"b"], [b"b,a"]]


def test_a_key_with_days_that_never_were_is_read_to_its_end(database, server):
    database.execute("set sql_mode = 'ALLOW_INVALID_DATES'")
    database.execute("create table t (d date primary key)")
    days = [b"2026-02-30", b"2026-02-31", b"2026-03-01"]
    database.executemany("insert into t values (%s)", [(each.decode(),) for each in days])
    chunk, found = Chunk(Catalogue(server).shape("shop.t"), 1), []
    for _ in days:
        found += list(chunk.read(server))
        chunk = replace(chunk, after=chunk.end, rows=0, end=None)
    assert found == [[each] for each in days]


def test_columns_that_the_server_made_for_itself_are_left_out(database, server):
    database.execute("create table t (id int primary key, text text, unique (text) using hash)")
    catalogue = Catalogue(server)
    columns = tuple(MappedColumn(each, 3) for each in ("id", "text", "DB_ROW_HASH_1"))
    mapped = TableMap("shop", "t", columns, (0,))
    assert [each.name for each in catalogue.shape("shop.t").columns] == ["id", "text"]
    assert [each.name for each in catalogue.shape_of(mapped, {}).columns] == ["id", "text"]


def test_a_password_is_not_sent_in_plain_text(odd, database):
    database.execute("create or replace user plain@'%' identified via pam")
    with pytest.raises(CaptureError, match="asks for the password in plain text"):
        Server(Secret(f"mariadb://plain:secret@127.0.0.1:{odd.port}"))
