"""Signed webhooks: what is let in, and how a body becomes events."""

import time
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.gateway import NOWHERE, captured, client, declared, orders

from penstock.errors import SettingsError, TopicError
from penstock.gateway import Limits, SignedWebhook, receiving
from penstock.gateway.clients import Clients
from penstock.gateway.producing import Preparation
from penstock.gateway.refusal import Refusal
from penstock.settings import Secret
from penstock.targets.webhook.signature import sign, signature_headers

SECRET = Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
KNOWN = replace(NOWHERE, connections={"partner": {"secret": SECRET.value}, "bare": {"url": "http://x"}})
FIELDS = {"customer": "data.who", "amount": "data.sum"}
HOOK = SignedWebhook("paid", orders, connection="partner", fields=FIELDS)
IDLE = SignedWebhook("paid", orders, connection="partner", event=lambda body: None)  # needs no broker
HOUR = timedelta(hours=1)
BODY = b'{"data": {"who": 3, "sum": 1}}'


def serving(hook=IDLE, **more):
    return client(declared(orders, webhooks={hook.name: hook}), settings=KNOWN, **more)


def deliver(web, body=BODY, path="/webhooks/paid", **headers):
    signed = signature_headers(SECRET, "d1", int(time.time()), body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.post(path, content=body, headers={name.lower(): each for name, each in signed.items()} | named)


def test_what_is_signed_is_let_in_without_the_token():
    assert deliver(serving(token="another one")).json() == {"topic": "orders", "events": []}


@pytest.mark.parametrize(
    "change",
    [
        {"webhook_signature": "v1,AAAA"},
        {"webhook_signature": ""},
        {"webhook_signature": "é".encode("latin-1")},
        {"webhook_id": "d2"},
        {"webhook_timestamp": "1"},
        {"webhook_timestamp": str(int(time.time()) + 301)},
        {"webhook_timestamp": str(int(time.time()) - 301)},
        {"webhook_timestamp": "9" * 5000},
        {"webhook_timestamp": "now"},
        {"webhook_timestamp": ""},
    ],
)
def test_what_is_not_signed_not_now_or_not_so_stays_out(change):
    answer = deliver(serving(), **change)
    assert (answer.status_code, answer.json()["id"]) == (401, "gateway.signature")


def test_another_body_or_secret_stays_out():
    web = serving()
    headers = signature_headers(SECRET, "d1", int(time.time()), BODY)
    assert web.post("/webhooks/paid", content=BODY + b" ", headers=headers).status_code == 401
    headers = signature_headers(Secret("guessed"), "d1", int(time.time()), BODY)
    assert web.post("/webhooks/paid", content=BODY, headers=headers).status_code == 401


def test_one_of_several_signatures_is_enough():
    now = int(time.time())
    found = f"v1,AAAA {sign(SECRET, 'd1', now, BODY)}"
    answer = deliver(serving(), webhook_timestamp=str(now), webhook_signature=found)
    assert answer.status_code == 200


def test_a_delivery_has_an_id():
    body, now = BODY, int(time.time())
    for id in ("", "x" * 201):
        headers = signature_headers(SECRET, id, now, body)
        answer = serving().post("/webhooks/paid", content=body, headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (400, "gateway.key")


def test_a_sender_may_call_its_headers_otherwise():
    hook = replace(IDLE, headers=("svix-id", "svix-timestamp", "svix-signature"), window="1 minute")
    web, now = serving(hook), int(time.time())
    headers = {"svix-id": "d1", "svix-timestamp": str(now), "svix-signature": sign(SECRET, "d1", now, BODY)}
    assert web.post("/webhooks/paid", content=BODY, headers=headers).status_code == 200
    late = {**headers, "svix-timestamp": str(now - 61), "svix-signature": sign(SECRET, "d1", now - 61, BODY)}
    assert web.post("/webhooks/paid", content=BODY, headers=late).status_code == 401


def test_only_webhooks_that_are_declared_are_there():
    assert deliver(serving(), path="/webhooks/other").status_code == 404


def test_fields_are_found_in_the_body():
    body = {"data": {"who": "ada", "sum": "1.00", "more": 1}, "other": True}
    assert HOOK.values(body) == [{"customer": "ada", "amount": "1.00"}]
    assert HOOK.values([body, {}, 7]) == [{"customer": "ada", "amount": "1.00"}, {}, 7]
    lines = replace(HOOK, fields={"customer": "lines.1.name"})
    assert lines.values({"lines": [{}, {"name": "bob"}]}) == [{"customer": "bob"}]
    assert lines.values({"lines": [{}]}) == [{}]


def test_by_default_fields_have_their_own_names_and_others_are_left_out():
    hook = SignedWebhook("paid", orders, connection="partner")
    assert hook.values({"customer": "ada", "_source": 1}) == [{"customer": "ada"}]


def test_a_function_makes_the_events():
    hook = SignedWebhook("paid", orders, connection="partner", event=lambda body: body["orders"])
    assert hook.values({"orders": [1, 2]}) == [1, 2]
    assert hook.values({"orders": None}) == []
    assert deliver(serving(hook), b'{"orders": null}').json() == {"topic": "orders", "events": []}


def test_a_declaration_that_can_not_be():
    with pytest.raises(TopicError, match="a field 'colour'"):
        replace(HOOK, fields={"colour": "c"})
    with pytest.raises(TopicError, match="fields= and event="):
        replace(HOOK, event=lambda body: body)
    with pytest.raises(TopicError, match="only a capture"):
        SignedWebhook("paid", captured, connection="partner")
    with pytest.raises(SettingsError, match="has no secret"):
        replace(HOOK, connection="bare").secret(KNOWN)
    with pytest.raises(SettingsError, match="no connection 'nobody'"):
        serving(replace(HOOK, connection="nobody"))


@pytest.mark.parametrize("body", [b'[[{"customer": "x", "amount": 1, "id": "forged"}]]', b"[[]]", b"[7]"])
def test_no_list_in_a_list_leads_past_the_fields_that_are_mapped(body):
    with pytest.raises(Refusal, match="expected an object with the fields of Order"):
        receiving._read(HOOK, Preparation(orders, Clients(KNOWN, HOUR), 10), body, b"k" * 32, is_lines=False)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_what_is_signed_comes_once(name):
    headers = signature_headers(SECRET, "d1", int(time.time()), BODY)
    twice = [*((each.lower(), value) for each, value in headers.items()), (name, "x")]
    answer = serving().post("/webhooks/paid", content=BODY, headers=twice)
    assert (answer.status_code, answer.json()["id"]) == (400, "gateway.header")


def test_keys_are_remembered_for_as_long_as_a_signature_is_good():
    with pytest.raises(SettingsError, match=r"gateway\.keys is 0:09:59"):
        serving(limits=Limits(keys=timedelta(minutes=9, seconds=59)))
    assert serving(limits=Limits(keys=timedelta(minutes=10)))
