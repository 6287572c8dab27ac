"""Queries of views: what they ask for, and what they refuse."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from tests.gateway import client, declared, orders

from penstock.errors import SettingsError, TargetError
from penstock.gateway import Declared, SignedWebhook, View
from penstock.gateway.refusal import Refusal
from penstock.gateway.view_query import ViewQuery
from penstock.pipeline import Pipeline
from penstock.targets import PostgresTable

BALANCES = PostgresTable("balances", key="account", write="upsert")
VERSIONS = PostgresTable("versions", key="account")
MONTHS = PostgresTable("months", key=("account", "month"), write="upsert")
COLUMNS = {
    "account": "text",
    "month": "date",
    "balance": "numeric",
    "at": "timestamp with time zone",
    "id": "text",
}
THEN = datetime(2026, 1, 1, tzinfo=UTC)


def sql(query, columns=COLUMNS):
    return query.statement(columns).as_string(None)


def test_values_are_never_part_of_the_text():
    evil = "x'; DROP TABLE balances; --"
    query = ViewQuery(View(MONTHS), key=(evil, evil))
    assert "DROP" not in sql(query)
    assert query.values == [evil, evil]
    assert sql(query).count("%s") == 2
    odd = ViewQuery(View(PostgresTable("s.odd", key='a"b', write="upsert")), key=("x",))
    assert '"a""b"' in sql(odd, {'a"b': "text"})


def test_a_page_goes_on_after_a_key():
    query = ViewQuery(View(MONTHS), after=("ada", "2026-01-01"), limit=5)
    assert '("account", "month") > (%s, %s)' in sql(query)
    assert sql(query).endswith('ORDER BY "r"."account", "r"."month" LIMIT 5')


def test_numbers_are_text_and_bytes_base64():
    assert '"balance"::text AS "balance"' in sql(ViewQuery(View(BALANCES)))
    assert "base64" in sql(ViewQuery(View(BALANCES)), {**COLUMNS, "photo": "bytea"})


def test_of_versions_the_last_of_each_key_counts():
    now, then = ViewQuery(View(VERSIONS)), ViewQuery(View(VERSIONS), key=("ada",), at=THEN)
    assert 'DISTINCT ON ("account")' in sql(now)
    assert 'ORDER BY "account", "at" DESC NULLS LAST, "id" DESC NULLS LAST' in sql(now)
    assert '("account") = (%s) AND "at" <= %s' in sql(then)
    assert then.values == ["ada", THEN]
    assert '"at" DESC NULLS LAST, "balance" DESC' in sql(ViewQuery(View(VERSIONS, order=("balance",))))


def test_history_is_a_table_of_versions():
    view = View(BALANCES, history=VERSIONS)
    assert '"versions"' in sql(ViewQuery(view, at=THEN))
    assert '"balances"' in sql(ViewQuery(view))
    assert "DISTINCT" not in sql(ViewQuery(view))
    with pytest.raises(TargetError, match="not its history"):
        View(BALANCES, history=MONTHS)


def test_without_history_there_is_no_past():
    with pytest.raises(Refusal, match="has no history") as refused:
        ViewQuery(View(BALANCES), at=THEN)
    assert refused.value.status == 409
    with pytest.raises(Refusal, match="no time in a column 'at'"):
        sql(ViewQuery(View(VERSIONS), at=THEN), {"account": "text", "at": "text"})


def test_another_order_has_known_columns():
    query = ViewQuery(View(BALANCES), order=("-balance", "at"), limit=10)
    assert 'ORDER BY "r"."balance" DESC NULLS LAST, "r"."at" NULLS LAST, "r"."account" LIMIT 10' in sql(query)
    with pytest.raises(Refusal, match="no column"):
        sql(ViewQuery(View(BALANCES), order=("1; DROP",)))
    with pytest.raises(Refusal, match="after="):
        ViewQuery(View(BALANCES), order=("balance",), after=("ada",))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/views/other", 404),
        ("/views/other/ada", 404),
        ("/views/months/ada", 400),
        ("/views/months/ada/2026-01-01/more", 400),
        ("/views/months/a%2Fb", 400),
        ("/views/months/%FF/2026", 400),
        ("/%76iews/months/ada", 400),
        ("/views%2Fmonths%2Fada", 400),
        ("/views/months?after=ada", 400),
        ("/views/months?limit=1001", 400),
        ("/views/months?at=then", 400),
        ("/views/months?at=2026-01-01T00:00:00Z", 409),
    ],
)
def test_what_can_not_be_asked_is_refused(path, status):
    assert client(declared(orders, views={"months": View(MONTHS)})).get(path).status_code == status


class shop:
    pipeline = Pipeline("shop")
    named = View(BALANCES, name="now", history=VERSIONS)


@shop.pipeline.flow(reads={"orders": orders}, writes=BALANCES)
def balances(orders):
    raise NotImplementedError


@shop.pipeline.flow(reads={"orders": orders}, writes=MONTHS)
def months(orders):
    raise NotImplementedError


def test_tables_that_flows_write_are_views():
    found = Declared.of([shop])
    assert sorted(found.views) == ["months", "now"]
    assert found.topics == {"orders": orders}


def hook(connection):
    return SignedWebhook("paid", orders, connection=connection)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ({"view": View(VERSIONS, name="now")}, "view 'now'"),
        ({"view": View(VERSIONS, name="months")}, "view 'months'"),  # a flow writes a table of this name
        ({"one": hook("partner"), "other": hook("stranger")}, "webhook 'paid'"),
    ],
)
def test_two_of_one_name_are_refused(module, name):
    with pytest.raises(SettingsError, match=f"{name} is declared twice"):
        Declared.of([shop, SimpleNamespace(**module)])


def test_what_a_module_imports_from_another_is_the_same():
    modules = [SimpleNamespace(view=shop.named, hook=hook("partner")) for _ in range(2)]
    assert sorted(Declared.of([shop, *modules]).views) == ["months", "now"]
