"""Connections over plain sockets: whoever takes nothing of its answer does not hold its place."""

import socket
import time

import httpx
import pytest
from starlette.responses import Response
from starlette.routing import Route
from tests.gateway import NOWHERE, Limits, declared, live

from penstock.gateway import connections


async def large(_):
    return Response(b"x" * 16 * 2**20)


def asked(port, path):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return client


@pytest.mark.timeout(60)
def test_a_client_that_takes_nothing_is_cut_off_and_a_slow_one_is_served(monkeypatch):
    monkeypatch.setattr(connections, "_READ_S", 1.0)
    served = declared(routes=([Route("/large", large)],))
    with live(served, NOWHERE, limits=Limits(connections=3)) as address:
        port = int(address.rpartition(":")[2])
        slow, *deaf = [asked(port, "/large") for _ in range(3)]
        time.sleep(0.3)
        assert httpx.get(f"{address}/openapi.json").status_code == 503
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert slow.recv(2**17)
            time.sleep(0.1)
        assert httpx.get(f"{address}/openapi.json").status_code == 200
        assert slow.recv(100)
        for each in (slow, *deaf):
            each.close()
