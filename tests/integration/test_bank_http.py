"""The bank over HTTP: each command done once for its key, refusals with their reasons, the past by time."""

from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from penstock.apps.bank import http
from penstock.gateway import Declared, Gateway, Limits, Security
from penstock.sourcing import EventStore


@pytest.fixture
def client(settings, unique, monkeypatch):
    monkeypatch.setattr(http, "STORE", f"b{unique}")
    with EventStore(f"b{unique}", settings) as store:
        store.create()
    gateway = Gateway(Declared.of([http]), settings, Limits.of(settings))
    security = Security.of(settings, "127.0.0.1", 8080)
    with TestClient(gateway.application(security), base_url="http://127.0.0.1:8080") as found:
        yield found


def post(client, path, body, key=None):
    return client.post(path, json=body, headers={} if key is None else {"Idempotency-Key": key})


def test_a_command_is_done_once_for_its_key(client):
    assert post(client, "/bank/accounts/ada", {"owner": "Ada"}).json()["version"] == 1
    first = post(client, "/bank/accounts/ada/deposits", {"amount": "250.00"}, "slip-17")
    again = post(client, "/bank/accounts/ada/deposits", {"amount": "250.00"}, "slip-17")
    assert (first.json()["balance"], first.json()["repeated"]) == ("250.00", False)
    assert (again.json()["balance"], again.json()["repeated"]) == ("250.00", True)
    other = post(client, "/bank/accounts/ada/deposits", {"amount": "9.00"}, "slip-17")
    assert (other.status_code, other.json()["id"]) == (422, "bank.key-reused")
    assert client.get("/bank/accounts/ada").json()["balance"] == "250.00"


def test_what_the_rules_do_not_allow_is_refused_with_the_reason(client):
    assert post(client, "/bank/accounts/nobody/deposits", {"amount": "1.00"}).status_code == 404
    post(client, "/bank/accounts/ada", {"owner": "Ada"})
    refused = post(client, "/bank/accounts/ada/withdrawals", {"amount": "5.00"})
    assert refused.status_code == 409
    assert refused.json()["refusal"] == "InsufficientFunds"
    assert refused.json()["message"] == "there is 0.00, and 5.00 was asked for"
    assert client.delete("/bank/accounts/ada").json()["closed"] is True


@pytest.mark.parametrize("amount", ["12.505", "NaN", "Infinity", "lots", None, True, [], "1e400", -1])
def test_an_amount_that_is_none_is_never_booked(client, amount):
    post(client, "/bank/accounts/ada", {"owner": "Ada"})
    answer = post(client, "/bank/accounts/ada/deposits", {"amount": amount})
    assert answer.status_code in (409, 422), answer.text
    assert client.get("/bank/accounts/ada").json()["version"] == 1


def test_the_past_is_asked_for_by_time(client):
    post(client, "/bank/accounts/ada", {"owner": "Ada"})
    post(client, "/bank/accounts/ada/deposits", {"amount": "10.00"})
    between = datetime.now(UTC).isoformat()
    post(client, "/bank/accounts/ada/deposits", {"amount": "5.00"})
    assert client.get("/bank/accounts/ada", params={"at": between}).json()["balance"] == "10.00"
    assert client.get("/bank/accounts/ada", params={"at": "2020-01-01T00:00:00Z"}).status_code == 404
    assert client.get("/bank/accounts/ada", params={"at": "yesterday"}).status_code == 422
    types = [line["type"] for line in client.get("/bank/accounts/ada/history").json()["lines"]]
    assert types == ["Opened", "Deposited", "Deposited"]


def test_a_transfer_is_asked_for_once_by_its_name(client):
    body = {"payer": "ada", "payee": "bob", "amount": "30.00"}
    assert post(client, "/bank/transfers/rent", body).json()["stage"] == "requested"
    assert post(client, "/bank/transfers/rent", body).status_code == 200
    assert post(client, "/bank/transfers/rent", {**body, "amount": "31.00"}).status_code == 422
    assert client.get("/bank/transfers/rent").json()["amount"] == "30.00"
    assert client.get("/bank/transfers/other").status_code == 404
