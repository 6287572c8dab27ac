"""The page's own route: what it says while the database is away."""

import pytest
from tests.gateway import NOWHERE, client, declared

from penstock.apps.pageviews.page import gateway_routes, past_minutes
from penstock.errors import ServiceError
from penstock.settings import Secret

AWAY = "postgresql://nobody@127.0.0.1:1/nowhere"


def test_a_database_that_is_away_is_not_the_servers_fault(monkeypatch):
    with pytest.raises(ServiceError, match="did not answer"):
        past_minutes(AWAY)
    monkeypatch.setattr("penstock.settings.Settings.dsn", lambda *_: Secret(AWAY))
    answer = client(declared(routes=(gateway_routes,)), settings=NOWHERE).get("/pageviews/minutes")
    assert (answer.status_code, answer.json()["id"]) == (503, ServiceError.id)
