"""A Debezium connector's JSON as a capture."""

import json

import pytest

from penstock.capture.debezium import from_connector
from penstock.errors import CaptureError

CONFIG = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.hostname": "db",
    "database.password": "hunter2",
    "topic.prefix": "shop",
    "table.include.list": "public.orders,public\\.products",
    "slot.name": "debezium",
    "plugin.name": "pgoutput",
}


def read(connection="shop", **more):
    return from_connector("shop", json.dumps({"name": "c", "config": CONFIG | more}), connection)


def test_what_it_says_is_what_is_captured():
    found = read(**{"snapshot.mode": "no_data", "decimal.handling.mode": "string"})
    assert found.tables == ("public.orders", "public.products")
    assert (found.slot, found.prefix, found.snapshot, found.decimals) == (
        "debezium",
        "shop",
        "never",
        "string",
    )
    assert b"hunter2" not in found.to_json()
    assert not found.transactions
    assert read(**{"provide.transaction.metadata": "true"}).transactions


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"transforms": "route", "column.mask.with.5.chars": "x"}, "transforms = 'route'.*column.mask"),
        ({"time.precision.mode": "connect"}, "only 'adaptive' can be had"),
        ({"table.include.list": "public.*"}, "name each table"),
        ({"connector.class": "MySqlConnector"}, "not of Debezium's PostgreSQL connector"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(more, words):
    with pytest.raises(CaptureError, match=words):
        read(**more)


def test_its_database_is_not_taken_for_the_local_one():
    with pytest.raises(CaptureError, match="reads from db, and no connection is given"):
        read(connection=None)
