"""What the tests of the gateway serve, and a client of an application without a broker."""

import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated

import uvicorn
from starlette.testclient import TestClient

from penstock.events import Event, Precision
from penstock.gateway import Declared, Gateway, Limits, Security
from penstock.gateway.connections import bounded_protocol
from penstock.log import Table, Topic
from penstock.settings import Settings

NOWHERE = Settings(kafka={"bootstrap.servers": "127.0.0.1:1"})
HERE = "http://127.0.0.1:8080"


class Kind(Enum):
    SALE = "sale"
    REFUND = "refund"


@dataclass(frozen=True)
class Line:
    product: str
    pieces: int = 1


@dataclass(frozen=True)
class Order(Event):
    customer: str
    amount: Annotated[Decimal, Precision(12, 2)]
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    kind: Kind = Kind.SALE
    lines: list[Line] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    weight: float | None = None
    photo: bytes = b""

    def __post_init__(self):
        super().__post_init__()
        if self.amount < 0:
            raise ValueError("an amount is not negative")


orders = Topic("orders", Order, key="customer", partitions=2)
stock = Table("stock", Order, key="customer")
captured = Table("shop.public.customers", Order, key="customer", format="debezium-json")


def declared(*topics, **more):
    return Declared({topic.name: topic for topic in topics}, **more)


def client(served=None, *, limits=None, token=None, origins=(HERE,), settings=NOWHERE, base=HERE):
    """A client of an application in this process."""
    gateway = Gateway(served or declared(orders, stock, captured), settings, limits or Limits())
    security = Security(token, frozenset(origins))
    return TestClient(gateway.application(security), base_url=base, raise_server_exceptions=False)


def post(to, body, path="/topics/orders", **headers):
    """Post JSON, or bytes as they are."""
    named = {"content-type": "application/json"} | {name.replace("_", "-"): v for name, v in headers.items()}
    return to.post(path, **({"content": body} if isinstance(body, bytes) else {"json": body}), headers=named)


@contextmanager
def live(served, settings, *, limits=None, token=None):
    """A gateway that listens on a port, in a thread of this process; its address."""
    limits = limits or Limits()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        app = Gateway(served, settings, limits).application(Security(token, frozenset({address})))
        config = uvicorn.Config(app, http=bounded_protocol(limits.connections), log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join()
