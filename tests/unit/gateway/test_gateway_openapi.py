"""The OpenAPI document says what is served, and how."""

from dataclasses import replace

from tests.gateway import NOWHERE, captured, client, declared, orders, stock

from penstock.gateway import SignedWebhook, View
from penstock.targets import PostgresTable

HOOK = SignedWebhook("paid", orders, connection="partner")
VIEWS = {"months": View(PostgresTable("months", key=("account", "month"), write="upsert"))}


def test_every_path_that_is_served_is_there(tmp_path):

    known = replace(NOWHERE, connections={"partner": {"secret": "s"}})
    served = declared(
        orders, stock, captured, views=VIEWS, webhooks={"paid": HOOK}, written={"stock": "shop.s"}
    )
    found = client(served, settings=known).get("/openapi.json").json()
    assert sorted(found["paths"]) == [
        "/health",
        "/topics/orders",
        "/topics/orders/events",
        "/topics/shop.public.customers/events",
        "/topics/stock/events",
        "/views/months",
        "/views/months/{account}/{month}",
        "/webhooks/paid",
    ]
    event, listed = found["paths"]["/topics/orders"]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]["anyOf"]
    assert event["required"] == ["customer", "amount"]
    assert event["properties"]["kind"]["$ref"] == "#/components/schemas/Kind"
    assert listed["items"] == event
    assert found["components"]["schemas"]["Kind"]["enum"] == ["refund", "sale"]
