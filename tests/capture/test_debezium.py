"""The real Debezium runs here, and goes on after a restart."""

import psycopg
import pytest

from penstock.errors import ServiceError
from penstock.settings import reveal
from tests.connect.debezium import Debezium
from tests.connect.written import read_until


@pytest.fixture
def database(settings):
    with psycopg.connect(reveal(settings.dsn()), autocommit=True) as connection:
        yield connection


@pytest.fixture
def table(database, unique):
    """A table with one row, in a schema that no other test has."""
    name = f"s{unique}"
    database.execute(f"create schema {name}")
    database.execute(f"create table {name}.orders (id int primary key, item text)")
    database.execute(f"insert into {name}.orders values (1, 'there')")
    yield f"{name}.orders"
    database.execute(f"drop schema {name} cascade")


def config_of(table):
    schema = table.partition(".")[0]
    return {"topic.prefix": schema, "table.include.list": table}


@pytest.mark.long
@pytest.mark.parametrize("exactly_once", [False, True])
def test_rows_arrive(settings, database, table, exactly_once):
    config = config_of(table)
    with Debezium(settings, config, exactly_once=exactly_once) as debezium:
        database.execute(f"insert into {table} values (2, 'streamed')")
        debezium.stop()
        database.execute(f"insert into {table} values (3, 'meanwhile')")
        debezium.start()
        found = read_until(settings, config["topic.prefix"], lambda found: len(found) >= 3)
    assert [(one.value["op"], one.key["id"], one.value["after"]["item"]) for one in found] == [
        ("r", 1, "there"),
        ("c", 2, "streamed"),
        ("c", 3, "meanwhile"),
    ]
    assert not database.execute(
        "select from pg_replication_slots where slot_name = %s", [debezium.slot]
    ).fetchone()
    assert debezium.pid is None


@pytest.mark.long
def test_what_is_wrong_is_said(settings, table):
    wrong = config_of(table) | {"database.password": "wrong"}
    with pytest.raises(ServiceError, match="password authentication failed"), Debezium(settings, wrong):
        pass
