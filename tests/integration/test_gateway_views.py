"""Views through the gateway, with a real PostgreSQL: by key, in pages, as of a time, and followed."""

import threading
import time
from urllib.parse import quote

import psycopg
import pytest
from tests.gateway import client, declared

from penstock.gateway import View
from penstock.targets import PostgresTable

TABLES = """
CREATE TABLE gateway_months (account text, month date, paid numeric(12,2), tags jsonb, photo bytea,
    ratio double precision, at timestamptz, PRIMARY KEY (account, month));
INSERT INTO gateway_months SELECT 'ada', date '2026-01-01' + n * 31, n + 0.10, '{"n": [1]}', '\\x0001', 'NaN',
    '2026-01-01 00:00:00.5+01' FROM generate_series(0, 4) n;
INSERT INTO gateway_months (account, month) VALUES ('a/b %', '2026-01-01');
CREATE TABLE gateway_balances (account bigint PRIMARY KEY, balance numeric);
INSERT INTO gateway_balances SELECT n, 100 - n FROM generate_series(1, 5) n;
CREATE TABLE gateway_versions (id text PRIMARY KEY, account bigint, balance numeric, at timestamptz);
INSERT INTO gateway_versions SELECT a || '-' || v, a, v * 10, timestamptz '2026-01-01Z' + v * interval '1 day'
    FROM generate_series(1, 3) a, generate_series(0, 9) v;
INSERT INTO gateway_versions VALUES ('3-x', 3, -1, NULL), ('4-x', 4, 7, NULL);
CREATE TABLE gateway_pages (page int PRIMARY KEY, content text);
INSERT INTO gateway_pages SELECT n, repeat('x', CASE WHEN n = 0 THEN 5000000 ELSE 300000 END)
    FROM generate_series(0, 30) n;
"""
MONTHS = PostgresTable("gateway_months", key=("account", "month"), write="upsert")
BALANCES = PostgresTable("gateway_balances", key="account", write="upsert")
VERSIONS = PostgresTable("gateway_versions", key="account")
VIEWS = {
    "months": View(MONTHS, "months"),
    "balances": View(BALANCES, "balances", history=VERSIONS),
    "versions": View(VERSIONS, "versions"),
    "pages": View(PostgresTable("gateway_pages", key="page", write="upsert"), "pages"),
    "missing": View(PostgresTable("gateway_missing", key="k", write="upsert"), "missing"),
}


@pytest.fixture(scope="module")
def database(settings):
    with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
        connection.execute(TABLES)
        yield connection


@pytest.fixture(scope="module")
def web(settings, database):
    with client(declared(views=VIEWS), settings=settings) as found:
        yield found


def get(web, path):
    answer = web.get(f"/views/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_row_is_found_by_its_key(web):
    assert get(web, "months/ada/2026-02-01") == {
        "account": "ada",
        "month": "2026-02-01",
        "paid": "1.10",
        "tags": {"n": [1]},
        "photo": "AAE=",
        "ratio": "NaN",
        "at": "2025-12-31T23:00:00.5+00:00",
    }
    assert get(web, f"months/{quote('a/b %', safe='')}/2026-01-01")["paid"] is None


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("months/ada/2030-01-01", 404),
        ("months/ada/January", 422),
        ("months/ada/", 422),
        ("balances/one", 422),
        ("balances/99999999999999999999999", 422),
        ("balances/%00", 422),
        ("balances/-1", 404),
        ("balances/1%20OR%20true", 422),
        ("missing/1", 404),
        ("missing", 404),
        ("balances?order=paid", 400),
        ("balances?after=x", 422),
        ("months/ada/2026-01-01?at=2026-01-01T00:00:00Z", 409),
    ],
)
def test_what_is_not_there_or_does_not_fit(web, path, status):
    assert web.get(f"/views/{path}").status_code == status


def test_pages_lead_through_all_rows(web):
    seen, following = [], ""
    while following is not None:
        page = get(web, f"months?limit=4&{following}")
        seen += page["rows"]
        following = page["next"]
    assert [row["account"] for row in seen] == ["a/b %"] + ["ada"] * 5
    assert sorted(row["month"] for row in seen[1:]) == [row["month"] for row in seen[1:]]


def test_the_first_rows_in_another_order(web):
    rows = get(web, "balances?order=-balance&limit=2")["rows"]
    assert rows == [{"account": 1, "balance": "99"}, {"account": 2, "balance": "98"}]


def test_a_view_is_asked_as_of_a_time(web):
    assert get(web, "balances/2")["balance"] == "98"
    assert get(web, "balances/2?at=2026-01-04T12:00:00Z")["balance"] == "30"
    assert get(web, "balances/2?at=2026-01-04T00:00:00%2B01:00")["balance"] == "20"
    assert web.get("/views/balances/2?at=2025-01-01T00:00:00Z").status_code == 404
    page = get(web, "balances?at=2026-01-02T00:00:00Z&limit=2")
    assert [(row["account"], row["balance"]) for row in page["rows"]] == [(1, "10"), (2, "10")]
    assert [
        row["account"] for row in get(web, f"balances?at=2026-01-02T00:00:00Z&{page['next']}")["rows"]
    ] == [3]


def test_of_versions_the_last_counts(web):
    assert get(web, "versions/3")["id"] == "3-9"
    assert get(web, "versions/4")["id"] == "4-x"  # a version without a time is the last one to count
    assert len(get(web, "versions")["rows"]) == 4


def test_rows_that_are_too_large_together_are_refused(web):
    assert len(get(web, "pages/0")["content"]) == 5_000_000
    assert len(get(web, "pages?after=0&limit=10")["rows"]) == 10
    for _ in range(10):  # more often than there are connections
        answer = web.get("/views/pages?after=0&limit=20")
        assert (answer.status_code, answer.json()["id"]) == (413, "gateway.rows")
    assert len(get(web, "pages?limit=1")["rows"]) == 1


def test_changes_are_pushed_within_a_second(web, database):
    changed = []

    def change():
        time.sleep(0.5)
        database.execute("UPDATE gateway_balances SET balance = 1000 WHERE account = 5")
        changed.append(time.monotonic())

    with (
        web.websocket_connect("ws://127.0.0.1:8080/views/balances?key=5") as row,
        web.websocket_connect("ws://127.0.0.1:8080/views/balances?order=-balance&limit=1") as top,
    ):
        assert row.receive_json() == {"row": {"account": 5, "balance": "95"}}
        assert top.receive_json()["rows"][0]["account"] == 1
        thread = threading.Thread(target=change)
        thread.start()
        assert row.receive_json() == {"row": {"account": 5, "balance": "1000"}}
        assert top.receive_json()["rows"][0]["account"] == 5
        assert time.monotonic() - changed[0] < 1
        thread.join()
        database.execute("DELETE FROM gateway_balances WHERE account = 5")
        assert row.receive_json() == {"row": None}


def test_the_gateway_only_reads(web, settings):
    assert web.get("/health").status_code == 200
    with psycopg.connect(settings.dsn().value) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'penstock gateway'"
        ).fetchone()
    assert 1 <= found[0] <= 8
