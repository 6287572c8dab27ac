"""The OpenAPI document against the gateway itself: whatever fits it or not, nothing is the server's fault."""

import logging
from contextlib import suppress
from dataclasses import replace

import hypothesis
import psycopg
import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.gateway import declared, live, orders, stock

from penstock.gateway import Limits, SignedWebhook, View
from penstock.log import Broker, apply
from penstock.targets import PostgresTable

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
QUIETLY = {
    "deadline": None,
    "database": None,
    "derandomize": True,
    "suppress_health_check": list(hypothesis.HealthCheck),
}
LOG = logging.getLogger(__name__)
MONTHS = PostgresTable("gateway_fuzzed", key=("account", "month"), write="upsert")
VERSIONS = PostgresTable("gateway_fuzzed_versions", key=("account", "month"))


@pytest.fixture(scope="module")
def address(settings):
    known = replace(settings, connections={"partner": {"secret": "s"}})
    topics = [replace(orders, name="gateway.fuzzed"), replace(stock, name="gateway.fuzzed-table")]
    apply(topics, Broker(settings))
    with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
        for table in (MONTHS, VERSIONS):
            connection.execute(
                f"CREATE TABLE {table.name} (account bigint, month date, paid numeric, at timestamptz)"
            )
            connection.execute(f"INSERT INTO {table.name} VALUES (1, '2026-01-01', 1, '2026-01-01Z')")
    views = {"months": View(MONTHS, "months", history=VERSIONS), "versions": View(VERSIONS, "versions")}
    hook = SignedWebhook("paid", topics[0], connection="partner")
    served = declared(*topics, views=views, webhooks={"paid": hook})
    limits = Limits(rate=100_000, burst=1_000_000, wait=Limits().wait / 30)
    with live(served, known, limits=limits) as found:
        yield found


def fuzz(address, examples):
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:

            @hypothesis.settings(max_examples=examples, **QUIETLY)
            @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
            def check(case):
                nonlocal tried
                tried += 1
                case.call_and_validate(checks=CHECKS, timeout=30)

            with suppress(hypothesis.errors.Unsatisfiable):  # nothing can be wrong with some paths
                check()
    return tried


@pytest.mark.long
@pytest.mark.timeout(900)
def test_many_requests_of_every_kind(address):
    tried = fuzz(address, 200)
    LOG.info("%s requests", tried)
    assert tried > 2_000
