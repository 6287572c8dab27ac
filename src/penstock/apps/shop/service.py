"""The shop's services, each a group of its own: `python -m penstock.apps.shop.service payment`.

A service keeps its position in the transaction of its own writes, so that each event counts once.
"""

import signal
import sys
import threading
from collections.abc import Callable

import psycopg

from penstock.apps.shop.database import Connection, move
from penstock.apps.shop.events import Kind, OrderEvent, order_events
from penstock.log import PostgresConsumer
from penstock.settings import Settings

_PAY = "INSERT INTO payments (order_id, amount, took) VALUES (%s, %s, clock_timestamp() - %s)"
_HANDLED = """
INSERT INTO services VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET handled = services.handled + excluded.handled
"""
_COUNT = """
INSERT INTO customers VALUES (%(customer)s, %(orders)s, %(units)s)
ON CONFLICT (customer) DO UPDATE
SET orders = customers.orders + %(orders)s, units = customers.units + %(units)s
"""


def payment(connection: Connection, event: OrderEvent) -> None:
    """Take the money of an order, or give it back."""
    is_placed = event.kind is Kind.PLACED
    connection.execute(_PAY, [event.order_id, event.total if is_placed else -event.total, event.at])
    if is_placed:
        connection.execute("UPDATE orders SET status = 'paid' WHERE id = %s", [event.order_id])


def inventory(connection: Connection, event: OrderEvent) -> None:
    """Take what was ordered out of the stock, or put it back."""
    sign = -1 if event.kind is Kind.PLACED else 1
    for item in event.items:
        move(connection, item.product_id, sign * item.quantity, "order")


def analytics(connection: Connection, event: OrderEvent) -> None:
    """Count the orders of each customer, and how much is in them."""
    sign = 1 if event.kind is Kind.PLACED else -1
    units = sign * sum(item.quantity for item in event.items)
    connection.execute(_COUNT, {"customer": event.customer, "orders": sign, "units": units})


SERVICES: dict[str, Callable[[Connection, OrderEvent], None]] = {
    each.__name__: each for each in (payment, inventory, analytics)
}


def group_of(service: str) -> str:
    """The group that a service reads as."""
    return f"shop.{service}"


def serve(name: str, settings: Settings, stopped: threading.Event) -> None:
    """Work until it is stopped; started again under its name, it gets its partitions back at once."""
    handle = SERVICES[name]
    with (
        psycopg.connect(settings.dsn().value, autocommit=True) as connection,
        PostgresConsumer(
            order_events, settings, connection, group=group_of(name), member=group_of(name)
        ) as consumer,
    ):
        while not stopped.is_set():
            for batch in consumer.batches(200, "20 ms", idle="500 ms"):
                for record in batch:
                    if record.event is not None:
                        handle(connection, record.event)
                connection.execute(_HANDLED, [name, len(batch)])


def main() -> None:
    """Work until SIGTERM."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who has started it
    print(f"{sys.argv[1]} handles order events", flush=True)  # noqa: T201
    serve(sys.argv[1], Settings.load(), stopped)


if __name__ == "__main__":
    main()
