"""Events out through the gateway, by long poll and by WebSocket, with a real broker."""

import json
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect
from tests.gateway import Order, captured, client, declared, orders, post

from penstock.gateway import Limits, readers
from penstock.log import Broker, Producer, apply
from penstock.log.transactional_producer import TransactionalProducer

ODD = b'{"n": 123456789012345678901234567890, "s": "\\ud800"}'
NO_ACKNOWLEDGEMENTS = ('{"ack": 1}', '{"ack": -1}', "nonsense", "[]", '{"ack": true}', '{"ack": 1e400}')


@pytest.fixture(scope="module")
def web(settings):
    """A gateway over the topics of this file, one of which is empty."""
    topics = [replace(orders, name=f"gateway.{name}") for name in ("reads", "empty", "pushed")]
    apply(topics, Broker(settings))
    with Producer(settings) as producer:
        for number in range(10):
            producer.send(topics[0], order(number), partition=number % 2)
        producer.send_bytes(topics[0].name, b"k\xff", b"not \xff JSON", partition=0)
        producer.send_bytes(
            topics[0].name, None, b'{"n": 123456789012345678901234567890, "s": "\\ud800"}', None, 0
        )
        producer.send_bytes(topics[0].name, b"gone", None, partition=0)
    with client(declared(*topics), settings=settings, limits=Limits(streams=3, burst=10_000)) as found:
        yield found


def order(number):
    return Order(f"c{number}", Decimal(number), id=f"o{number}")


def events(web, query, topic="gateway.reads"):
    answer = web.get(f"/topics/{topic}/events?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def connect(web, path, **more):
    return web.websocket_connect(f"ws://127.0.0.1:8080/topics/{path}", **more)


def ids(found):
    return [each["event"]["id"] for each in found["events"] if "event" in each]


def test_a_partition_is_read_from_an_offset_on(web):
    found = events(web, "partition=1&offset=2&limit=2")
    assert ids(found) == ["o5", "o7"]
    first = found["events"][0]
    assert (first["partition"], first["offset"], first["key"]) == (1, 2, "c5")
    assert first["event"]["amount"] == "5.00"
    assert datetime.fromisoformat(first["written"]) > datetime.now(UTC) - timedelta(hours=1)
    assert found["next"] == "1:4"


def test_next_leads_through_all_partitions(web):
    seen, begin = [], "beginning"
    for _ in range(20):
        found = events(web, f"from={begin}&limit=4")
        seen += found["events"]
        begin = found["next"]
        if len(seen) >= 13:
            break
    assert begin == "0:8,1:5"
    assert len({(each["partition"], each["offset"]) for each in seen}) == len(seen) == 13
    assert {each["event"]["id"] for each in seen if "event" in each} == {f"o{number}" for number in range(10)}


def test_what_is_malformed_is_shown_as_such(web):
    bad, odd, gone = events(web, "partition=0&offset=5")["events"]
    assert "error" in bad
    assert (bad["key"], bad["value"]) == ("k\\xff", "not \\xff JSON")
    assert "error" in odd
    assert "123456789012345678901234567890" in str(odd["value"])
    assert gone["deleted"] is True


def test_a_moment_is_a_beginning(web):
    assert events(web, "from=2099-01-01T00:00:00Z") == {"events": [], "next": "0:8,1:5"}
    assert len(events(web, "from=2020-01-01T00:00:00Z")["events"]) > 0


def test_a_place_that_is_not_in_the_log(web, settings):
    assert web.get("/topics/gateway.reads/events?partition=2&offset=0").status_code == 404
    beyond = web.get("/topics/gateway.reads/events?partition=1&offset=6")
    assert (beyond.status_code, beyond.json()["end"]) == (416, 5)
    Broker(settings).delete_records("gateway.reads", {1: 1})
    gone = web.get("/topics/gateway.reads/events?partition=1&offset=0")
    assert (gone.status_code, gone.json()["earliest"]) == (410, 1)


def test_a_long_poll_waits_for_what_comes_and_sees_nothing_uncommitted(web, settings):
    topic = replace(orders, name="gateway.empty")
    writer = TransactionalProducer(settings, "gateway-test", "10 seconds")
    writer.open()
    writer.begin()
    writer.producer.send(topic, order(1), partition=0)
    writer.producer.flush()
    found = []
    poll = threading.Thread(target=lambda: found.append(events(web, "from=0:0,1:0&wait=20", topic.name)))
    poll.start()
    time.sleep(0.7)
    assert not found
    writer.commit()
    committed = time.monotonic()
    poll.join(10)
    assert ids(found[0]) == ["o1"]
    assert time.monotonic() - committed < 2
    assert events(web, "from=end&wait=0", topic.name)["events"] == []


def received(socket, count):
    """Events of messages, until there are so many, and how many messages it took."""
    found = []
    while len(found) < count:
        found += socket.receive_json()["events"]
    return found


def test_a_client_has_a_window_of_events_and_goes_on_from_where_it_was(web, settings):
    topic = replace(orders, name="gateway.pushed")
    with connect(web, f"{topic.name}?from=end&window=3") as socket:
        assert socket.receive_json() == {"events": [], "next": "0:0,1:0"}
        with Producer(settings) as producer:
            for number in range(9):
                producer.send(topic, order(number), partition=0)
        assert [each["offset"] for each in received(socket, 3)] == [0, 1, 2]
        socket.send_json({"ack": 2})
        assert [each["offset"] for each in received(socket, 2)] == [3, 4]
        socket.send_json({"ack": 3})
        last = socket.receive_json()
    with connect(web, f"{topic.name}?from={last['next']}") as socket:
        rest = received(socket, 9 - 5 - len(last["events"]))
    assert [each["offset"] for each in [*last["events"], *rest]] == [5, 6, 7, 8]


@pytest.mark.parametrize(
    "said", ['{"ack": 1}', '{"ack": -1}', "nonsense", "[]", '{"ack": true}', '{"ack": 1e400}']
)
def test_a_message_that_is_no_acknowledgement_ends_the_connection(web, said):
    with connect(web, "gateway.empty") as socket:
        socket.receive_json()
        socket.send_text(said)
        assert socket.receive_json()["error"]["id"] == "gateway.message"
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
    assert closed.value.code == 1008


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("other", {}, 404),
        ("gateway.reads?from=0:99", {}, 416),
        ("gateway.reads?window=0", {}, 400),
        ("gateway.reads", {"origin": "null"}, 403),
        ("gateway.reads", {"host": "evil.example"}, 421),
    ],
)
def test_a_connection_is_refused_as_a_request_is(web, path, headers, status):
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        connect(web, f"{path}", headers=headers),
    ):
        pass
    assert refused.value.status_code == status


def test_more_readers_than_there_may_be_are_asked_to_wait(web):
    with (
        connect(web, "gateway.empty"),
        connect(web, "gateway.empty"),
        connect(web, "gateway.empty"),
    ):
        answer = web.get("/topics/gateway.reads/events")
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1


def test_events_whose_schema_is_registered_go_in_and_out(settings):
    topic = replace(orders, name="gateway.avro", format="avro", partitions=1)
    apply([topic], Broker(settings))
    with client(declared(topic), settings=settings) as web:
        body = {"id": "o1", "customer": "ada", "amount": "1.50", "at": "2026-01-01T00:00:00Z"}
        for headers in ({}, {"idempotency_key": "k"}):
            assert post(web, body, f"/topics/{topic.name}", **headers).status_code == 200
        found = events(web, "from=beginning", topic.name)
    assert ids(found) == ["o1", "o1"]
    assert found["events"][0]["event"]["amount"] == "1.50"


def test_captured_changes_are_shown_as_they_are(settings):
    table = replace(captured, name="gateway.captured")
    apply([table], Broker(settings))
    change = {"op": "c", "after": {"customer": "ada"}}
    with Producer(settings) as producer:
        producer.send_bytes(table.name, b"k", json.dumps(change).encode())
    with client(declared(table), settings=settings) as web:
        (found,) = events(web, "from=beginning", table.name)["events"]
    assert (found["key"], found["value"]) == ("k", change)


def test_partitions_that_are_added_are_read_from_their_beginning(settings, monkeypatch):
    monkeypatch.setattr(readers, "_LOOK_EVERY", 0.0)
    topic = replace(orders, name="gateway.grown", partitions=1)
    apply([topic], Broker(settings))
    with client(declared(topic), settings=settings) as web:
        before = events(web, "from=beginning", topic.name)["next"]
        apply([replace(topic, partitions=2)], Broker(settings))
        with Producer(settings) as producer:
            producer.send(topic, order(7), partition=1)
        found = events(web, f"from={before}&wait=5", topic.name)
    assert (before, ids(found), found["next"]) == ("0:0", ["o7"], "0:0,1:1")


def test_an_event_behind_an_open_transaction_is_waited_for(settings):
    topic = replace(orders, name="gateway.behind", partitions=1)
    apply([topic], Broker(settings))
    writer = TransactionalProducer(settings, "gateway-behind", "10 seconds")
    writer.open()
    writer.begin()
    writer.producer.send(topic, order(1))
    writer.producer.flush()
    with client(declared(topic), settings=settings) as web:
        body = {"id": "o2", "customer": "ada", "amount": "1.50"}
        (place,) = post(web, body, f"/topics/{topic.name}").json()["events"]
        query = f"partition=0&offset={place['offset']}"
        assert events(web, query, topic.name) == {"events": [], "next": f"0:{place['offset']}"}
        beyond = web.get(f"/topics/{topic.name}/events?partition=0&offset={place['offset'] + 2}")
        assert (beyond.status_code, beyond.json()["end"]) == (416, place["offset"] + 1)
        threading.Timer(0.5, writer.commit).start()
        assert ids(events(web, f"{query}&wait=10", topic.name)) == ["o2"]


def test_a_client_that_follows_gets_partitions_that_are_added(settings, monkeypatch):
    monkeypatch.setattr(readers, "_LOOK_EVERY", 0.5)
    topic = replace(orders, name="gateway.grows", partitions=1)
    apply([topic], Broker(settings))
    with (
        client(declared(topic), settings=settings) as web,
        connect(web, f"{topic.name}?from=beginning") as all_of_it,
        connect(web, f"{topic.name}?from=beginning&partition=0") as one,
    ):
        for each in (all_of_it, one):
            each.receive_json()
        apply([replace(topic, partitions=2)], Broker(settings))
        with Producer(settings) as producer:
            producer.send(topic, order(7), partition=1)
            producer.flush()
            (found,) = received(all_of_it, 1)
            producer.send(topic, order(8), partition=0)
            producer.flush()
        (other,) = received(one, 1)
        (last,) = received(all_of_it, 1)
    assert [(each["partition"], each["offset"]) for each in (found, other, last)] == [(1, 0), (0, 0), (0, 0)]
