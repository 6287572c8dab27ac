"""Deliveries whose producer fails for good, by librdkafka's own way to test that: nobody waits for ever."""

import asyncio
import ctypes
import time
from pathlib import Path

import confluent_kafka
import pytest
from tests.gateway import NOWHERE

from penstock.errors import LogError
from penstock.gateway import delivery as module
from penstock.gateway.delivery import Delivery
from penstock.gateway.refusal import Refusal
from penstock.gateway.submission import Outgoing

MESSAGE = Outgoing("orders", b"k", b"v")
FATAL = 47  # INVALID_PRODUCER_EPOCH
HEAD = object.__basicsize__  # of a Python object, before the client's own pointer


def break_for_good(client):
    """Let a client meet a fatal error."""
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka*"))))
    handle = ctypes.cast(id(client) + HEAD, ctypes.POINTER(ctypes.c_void_p))[0]
    raise_fatal = library.rd_kafka_test_fatal_error
    raise_fatal.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p]
    assert raise_fatal(handle, FATAL, b"for a test") == 0


async def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


@pytest.mark.timeout(60)
def test_a_producer_that_fails_for_good_is_replaced_and_what_it_had_is_refused():
    async def run():
        delivery = Delivery(NOWHERE)
        broken = delivery._producer
        on_its_way = asyncio.create_task(delivery.send(MESSAGE))
        await until(lambda: len(broken.client) > 0)
        began = time.monotonic()
        break_for_good(broken.client)
        failure = (await asyncio.gather(on_its_way, return_exceptions=True))[0]
        waited = time.monotonic() - began
        await until(lambda: delivery._producer is not broken)
        later = asyncio.create_task(delivery.send(MESSAGE))
        await until(lambda: len(delivery._producer.client) > 0)  # the new one has taken it
        alive = delivery._thread.is_alive()
        later.cancel()
        delivery._producer.client.purge()
        delivery.close()
        return failure, waited, alive, delivery._waiting

    failure, waited, alive, left = asyncio.run(run())
    assert isinstance(failure, Refusal | LogError)
    assert waited < 8  # before the client itself gives the message up
    assert alive
    assert not left


def test_nobody_waits_for_longer_than_a_message_may_take(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.05)

    async def run():
        delivery = Delivery(NOWHERE)
        try:
            await delivery.send(MESSAGE)
        finally:
            delivery._producer.client.purge()
            delivery.close()

    with pytest.raises(Refusal) as refused:
        asyncio.run(run())
    assert (refused.value.status, refused.value.id) == (503, "try-again.delivery")
