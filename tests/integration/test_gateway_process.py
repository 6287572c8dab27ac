"""A gateway as it runs in production: asked to end, read by slow clients, attacked over plain sockets."""

import asyncio
import json
import logging
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import psutil
import pytest
import websockets
from tests.gateway import Limits, declared, live, orders
from tests.gateway_process import GatewayProcess
from tests.integration.gateway_shop import Sale, sales

from penstock.gateway import SignedWebhook
from penstock.log import Broker, Producer, apply
from penstock.log.cursor import Cursor
from penstock.settings import Secret
from penstock.targets.webhook.client import Client as WebhookClient
from penstock.targets.webhook.endpoint import Endpoint
from penstock.targets.webhook.event import Event as WebhookEvent
from penstock.targets.webhook.event import Request

LOG = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def topic(settings):
    apply([sales], Broker(settings))
    return sales


def followed(gateway, query=""):
    return websockets.connect(f"ws://127.0.0.1:{gateway.port}/topics/{sales.name}{query}", max_size=2**23)


@pytest.mark.long
def test_asked_to_end_it_ends_in_order(settings, topic):
    with GatewayProcess(settings) as gateway, ThreadPoolExecutor() as threads:

        async def closed():
            async with followed(gateway) as client:
                await client.recv()
                ready.append(True)
                await client.wait_closed()
                return client.close_code

        ready = []
        poll = threads.submit(httpx.get, f"{gateway.address}/topics/{sales.name}/events?wait=30", timeout=40)
        code = threads.submit(asyncio.run, closed())
        while not ready:
            time.sleep(0.05)
        time.sleep(1)
        began = time.monotonic()
        assert gateway.terminate() == 0
        assert time.monotonic() - began < 10
        assert poll.result().status_code == 200
        assert poll.result().json()["events"] == []
        assert code.result() == 1012


def fill(settings, count, size):
    with Producer(settings) as producer:
        for number in range(count):
            event = Sale("x" * size, number, datetime(2026, 1, 1, tzinfo=UTC))
            producer.send(sales, event, partition=0)


def memory(gateway):
    return psutil.Process(gateway.process.pid).memory_info().rss / 2**20


@pytest.mark.long
@pytest.mark.timeout(300)
def test_slow_clients_cost_no_memory(settings, topic):
    begin = Broker(settings).offsets(sales.name)[0][1]
    fill(settings, 20_000, 10_000)  # 200 MB

    async def slow(client, seconds, taken):
        """Take an event now and then."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            events = json.loads(await client.recv())["events"]
            taken += [each["offset"] for each in events]
            if events:
                await client.send(json.dumps({"ack": len(events)}))
            await asyncio.sleep(0.5)

    async def deaf(port, seconds):
        """Acknowledge what was never read: the window stays open, and the socket is full."""
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        key = "dGhlIHNhbXBsZSBub25jZQ=="
        writer.write(
            f"GET /topics/{sales.name}?from=0:{begin},1:0,2:0&window=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            writer.write(b"\x81\x8a\0\0\0\0" + b'{"ack": 1}')
            await asyncio.sleep(0.05)
        writer.transport.abort()

    async def run(gateway, taken):
        before = memory(gateway)
        clients = [followed(gateway, f"?from=0:{begin},1:0,2:0&window=10") for _ in range(10)]
        opened = [await each for each in clients]
        work = [asyncio.create_task(slow(each, 20, taken if n == 0 else [])) for n, each in enumerate(opened)]
        work += [asyncio.create_task(deaf(gateway.port, 20)) for _ in range(5)]
        most = before
        while not all(each.done() for each in work):
            most = max(most, memory(gateway))
            await asyncio.sleep(0.2)
        for each in work:
            each.result()
        for each in opened:
            await each.close()
        return before, most

    taken = []
    with GatewayProcess(settings) as gateway:
        before, most = asyncio.run(run(gateway, taken))
        LOG.info("memory %.0f MB, at most %.0f MB; %s events taken", before, most, len(taken))
    assert taken == list(range(begin, begin + len(taken)))
    assert len(taken) > 50
    assert most - before < 250  # 15 clients with 15 consumers and windows; the topic has 200 MB for each


def request(line, *headers, host="Host: 127.0.0.1", body=b""):
    """The bytes of a request."""
    return "\r\n".join([f"{line} HTTP/1.1", *filter(None, [host]), *headers, "", ""]).encode("latin-1") + body


WRITE, ASK = "POST /topics/orders", "GET /openapi.json"
REQUESTS = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "two lengths": request(WRITE, "Content-Length: 2", "Content-Length: 3", body=b"{}x"),
    "length and chunks": request(WRITE, "Content-Length: 2", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "a negative length": request(WRITE, "Content-Length: -1"),
    "a huge length": request(WRITE, "Content-Length: 99999999999999999999"),
    "a folded line": request(ASK, "X: a\r\n b", "Host: evil.example"),
    "two hosts": request(ASK, "Host: evil.example"),
    "no host": request(ASK, host=None),
    "another host": request(ASK, host="Host: evil.example"),
    "an absolute path": request("GET http://evil.example/openapi.json"),
    "dots": request("GET /topics/../openapi.json"),
    "encoded dots": request("GET /topics/%2e%2e/openapi.json"),
    "no UTF-8": request("GET /topics/%ff/events"),
    "a NUL": request("GET /topics/%00/events"),
    "a raw byte": request("GET /topics/\xff/events"),
    "a header without end": request(ASK, "X: " + "a" * 1_000_000),
    "a header with a NUL": request(ASK, "X: a\0b"),
    "a strange method": request("BREW /topics/orders"),
    "another upgrade": request("GET /topics/orders", "Connection: upgrade", "Upgrade: h2c"),
    "a broken handshake": request(
        "GET /topics/orders", "Connection: upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 1"
    ),
}


def test_no_request_over_a_plain_socket_is_the_servers_fault(settings):
    with live(declared(orders), settings, limits=Limits(connections=50)) as address:
        port = int(address.rpartition(":")[2])
        for name, request in REQUESTS.items():
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                client.sendall(request)
                first = client.recv(4096).split(b"\r\n")[0]
            assert first.startswith(b"HTTP/1.1 4"), (name, first)
        assert httpx.get(f"{address}/openapi.json").status_code == 200


def test_connections_that_say_nothing_leave_room_for_none_but_are_not_served(settings):
    with live(declared(orders), settings, limits=Limits(connections=5)) as address:
        port = int(address.rpartition(":")[2])
        silent = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(5)]
        time.sleep(0.2)
        answer = httpx.get(f"{address}/openapi.json")
        assert (answer.status_code, answer.json()["id"]) == (503, "gateway.too-many")
        for each in silent:
            each.close()
        time.sleep(0.2)
        assert httpx.get(f"{address}/openapi.json").status_code == 200


def test_webhooks_of_our_own_flows_are_let_in_and_written_once(settings, unique):
    topic = replace(orders, name="gateway.delivered")
    apply([topic], Broker(settings))
    secret = Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    known = replace(settings, connections={"partner": {"secret": secret.value}})
    hook = SignedWebhook("ours", topic, connection="partner")
    with live(declared(topic, webhooks={"ours": hook}), known, token="another") as address:
        endpoint = Endpoint("partner", Secret(f"{address}/webhooks/ours"), secret=secret)
        client = WebhookClient(endpoint, "shop.orders", "30 seconds", "5 seconds")
        single = Request((delivered(unique, 1),))
        lines = Request((delivered(unique, 2), delivered(unique, 3)), "ndjson", array=True)
        answers = [client.post(each, 1) for each in (single, single, lines, lines)]
        client.close()
    assert [each.status for each in answers] == [200] * 4
    assert answers[0].text == answers[1].text
    assert answers[2].text == answers[3].text
    ends = Broker(settings).committed_end(topic.name)
    with Cursor(topic.name, settings) as cursor:
        cursor.start()
        found = [topic.codec().decode(each.value()).id for each in cursor.read_to(ends)]
    assert sorted(each for each in found if unique in each) == [f"{unique}-{number}" for number in (1, 2, 3)]


def delivered(unique, number):
    """A result as a flow sends it, with a column that the topic's class does not have."""
    body = {"id": f"{unique}-{number}", "customer": "ada", "amount": "1.00", "more": {"n": number}}
    return WebhookEvent(body["id"], "ada", json.dumps(body), "orders", 0, number)
