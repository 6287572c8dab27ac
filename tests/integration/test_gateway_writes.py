"""Events in through the gateway, with a real broker: acknowledged, and once for a key."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest
from tests.gateway import NOWHERE, client, declared, orders, post

from penstock.gateway import SignedWebhook
from penstock.gateway.delivery import Delivery
from penstock.gateway.submission import Outgoing
from penstock.log import Broker, apply
from penstock.log.cursor import Cursor
from penstock.settings import Secret
from penstock.targets.webhook.signature import signature_headers


@pytest.fixture(scope="module")
def topic(settings):
    """A topic of this file's own."""
    made = replace(orders, name="gateway.writes", partitions=2)
    apply([made], Broker(settings))
    return made


@pytest.fixture(scope="module")
def web(settings, topic):
    with client(declared(topic), settings=settings) as found:
        yield found


def order(customer="ada", **more):
    return {"customer": customer, "amount": "1.00", **more}


def write(web, body, **headers):
    return post(web, body, "/topics/gateway.writes", **headers)


def stored(settings, topic, customer):
    """The places of a customer's events, by their ids."""
    with Cursor(topic.name, settings) as cursor:
        cursor.start()
        found = list(cursor.read_to(cursor.ends()))
    events = [(topic.codec().decode(each.value()), each) for each in found]
    return {
        event.id: (each.partition(), each.offset()) for event, each in events if event.customer == customer
    }


def headers_of(settings, topic, customer):
    with Cursor(topic.name, settings) as cursor:
        cursor.start()
        found = list(cursor.read_to(cursor.ends()))
    (one,) = [each for each in found if topic.codec().decode(each.value()).customer == customer]
    return one.headers() or []


@pytest.mark.parametrize("more", [{}, {"Idempotency-Key": "traced"}])
def test_the_trace_of_a_request_goes_with_its_events(web, settings, topic, unique, more):
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1"}
    write(web, order(unique), **trace, **{name: f"{unique}{key}" for name, key in more.items()})
    write(web, order(f"{unique}-bad"), traceparent="00-1-2-3\u00e9"[:8], tracestate="a=1")
    assert headers_of(settings, topic, unique) == [(name, text.encode()) for name, text in trace.items()]
    assert headers_of(settings, topic, f"{unique}-bad") == []


def test_events_are_answered_with_their_positions(web, settings, topic, unique):
    one = write(web, order(unique)).json()
    many = write(web, [order(unique), order(unique, id=f"{unique}-own")]).json()
    assert one["topic"] == "gateway.writes"
    answered = {each["id"]: (each["partition"], each["offset"]) for each in one["events"] + many["events"]}
    assert len(answered) == 3
    assert f"{unique}-own" in answered
    assert stored(settings, topic, unique) == answered


def test_a_key_is_answered_as_before_and_stores_nothing_again(web, settings, topic, unique):
    first = write(web, order(unique), idempotency_key=unique)
    again = write(web, order(unique), idempotency_key=unique)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.content == first.content
    assert ("idempotency-repeated" in first.headers, again.headers["idempotency-repeated"]) == (False, "true")
    other = write(web, order(unique, weight=1), idempotency_key=unique)
    assert (other.status_code, other.json()["id"]) == (422, "gateway.key-reused")
    unfit = write(web, b"{", idempotency_key=unique)
    assert unfit.json()["id"] == "gateway.key-reused"
    assert len(stored(settings, topic, unique)) == 1


def test_what_is_refused_uses_no_key_up(web, unique):
    assert write(web, order(unique, amount="x"), idempotency_key=unique).status_code == 422
    assert write(web, order(unique), idempotency_key=unique).status_code == 200


def test_two_gateways_know_each_others_keys(web, settings, topic, unique):
    keys = [f"{unique}-{number}" for number in range(20)]
    with client(declared(topic), settings=settings) as second:
        answers = {"first": {}, "second": {}}

        def send(name, to):
            for key in keys:
                answers[name][key] = write(to, order(unique), idempotency_key=key).json()

        threads = [threading.Thread(target=send, args=each) for each in (("first", web), ("second", second))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert answers["first"] == answers["second"]
    assert len(stored(settings, topic, unique)) == len(keys)


def test_an_event_that_its_topic_does_not_take_hurts_no_other(web, settings, topic, unique):
    Broker(settings).configure(topic.name, {"max.message.bytes": "2000"})
    try:
        large = {"notes": {f"n{number}": number for number in range(500)}}
        for headers in ({}, {"idempotency_key": unique}):
            answer = write(web, order(unique, **large), **headers)
            assert (answer.status_code, answer.json()["id"]) == (413, "gateway.body")
        assert write(web, [order(unique), order(unique, **large)]).status_code == 413
        assert write(web, order(unique), idempotency_key=f"{unique}-2").status_code == 200
    finally:
        Broker(settings).configure(topic.name, {"max.message.bytes": "1000000"})
    assert len(stored(settings, topic, unique)) == 1


def test_a_topic_that_was_not_made_is_not_the_clients_fault(settings, unique):
    with client(declared(replace(orders, name=f"missing-{unique}")), settings=settings) as web:
        answer = post(web, order(), f"/topics/missing-{unique}")
    assert (answer.status_code, answer.json()["id"]) == (503, "configuration.topic")


def test_it_works(web):
    assert web.get("/health").json() == {"status": "ok"}


@pytest.mark.long  # the broker is waited for
def test_without_a_broker_it_says_so():
    with client() as web:
        for headers in ({}, {"idempotency_key": "k"}):
            assert post(web, order(), **headers).status_code == 503
        assert web.get("/health").status_code == 503


def test_a_signed_delivery_is_written_once(settings, topic, unique):
    secret = Secret("a secret that both sides have")
    known = replace(settings, connections={"partner": {"secret": secret.value}})
    hook = SignedWebhook("paid", topic, connection="partner", fields={"customer": "who", "amount": "sum"})
    with client(declared(topic, webhooks={"paid": hook}), settings=known) as web:
        answers = []
        for body in (b'{"who": "%s", "sum": 1}', b'{"who": "%s", "sum": 1.0}', b'{"who": "%s"}', b"x%s"):
            given = body % unique.encode()
            headers = signature_headers(secret, unique, int(time.time()), given)
            answers.append(web.post("/webhooks/paid", content=given, headers=headers))
    assert {each.status_code for each in answers} == {200}
    assert len({each.content for each in answers}) == 1
    assert len(stored(settings, topic, unique)) == 1


@pytest.mark.long  # what is on its way is waited for
def test_a_full_buffer_reaches_the_client():
    async def send():
        delivery = Delivery(NOWHERE)
        message = Outgoing("orders", b"k", b"v")
        sent = [asyncio.create_task(delivery.send(message)) for _ in range(10_100)]
        refused, _ = await asyncio.wait(sent, timeout=2)
        found = [each.exception() for each in refused]
        timed_out = await asyncio.gather(*sent, return_exceptions=True)
        delivery.close()
        return found, timed_out

    refused, all_of_them = asyncio.run(send())
    assert {each.status for each in refused} == {429}
    assert len(refused) >= 100
    assert {each.status for each in all_of_them} == {429, 503}
