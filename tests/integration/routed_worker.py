"""Processes to be killed: `python routed_worker.py route|work BROKER NAME`.

`route` copies the orders of NAME to their queues; `work` takes the first job of a priority queue, reports its
number, and holds it.
"""

import os
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.events import Event
from penstock.log import Binding, ExactlyOnce, PriorityQueue, Router, Topic, from_beginning
from penstock.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEVELS = ("urgent", "normal", "bulk")


@dataclass(frozen=True)
class Order(Event):
    number: int
    kind: str = "new"
    region: str = "eu"
    at: datetime = NOW


def topics(name):
    """The topics of a test: those of a router, then those of a priority queue."""
    names = ("", ".europe", ".refunds", ".rest", *(f".{level}" for level in LEVELS))
    return [Topic(name + each, Order) for each in names]


def router(name):
    _, europe, refunds, rest, *_ = topics(name)
    bindings = (Binding(europe, "orders.*.eu"), Binding(refunds, "orders.refund.#"))
    return Router("orders.{kind}.{region}", bindings, otherwise=rest)


def route(settings, name):
    orders, routing = topics(name)[0], router(name)
    with ExactlyOnce(orders, settings, group=name, member="router", start=from_beginning()) as work:
        for transaction in work.transactions(50, "100 ms", idle="2 seconds"):
            for record in transaction:
                routing.send(transaction, record.event)
            os.write(1, b".")


def work(settings, name):
    with PriorityQueue(topics(name)[4:], settings, group=name) as queue:
        for lease in queue.take():
            os.write(1, b"%d\n" % lease.event.number)
            time.sleep(60)


if __name__ == "__main__":
    {"route": route, "work": work}[sys.argv[1]](
        Settings(kafka={"bootstrap.servers": sys.argv[2]}), sys.argv[3]
    )
