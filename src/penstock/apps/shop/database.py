"""The shop's own database: its tables, and each act of the shop as one transaction.

`python -m penstock.apps.shop.database 300` makes the tables if there are none, and lets 300 acts happen.
"""

import sys
from typing import Any

import psycopg

from penstock.apps.shop.events import Kind, order_events
from penstock.apps.shop.traffic import (
    Act,
    CancelOrder,
    ChangePrice,
    PlaceOrder,
    Restock,
    Traffic,
    first_products,
)
from penstock.settings import Settings

Connection = psycopg.Connection[Any]

_TABLES = """
CREATE TABLE products (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    price numeric(12, 2) NOT NULL,
    stock bigint NOT NULL,  -- below zero: so many are owed to customers
    threshold bigint NOT NULL
);
CREATE TABLE orders (
    id bigint PRIMARY KEY,
    customer text NOT NULL,
    status text NOT NULL DEFAULT 'placed',
    total numeric(12, 2) NOT NULL,
    placed timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE order_lines (
    id bigint PRIMARY KEY,
    order_id bigint NOT NULL REFERENCES orders ON DELETE CASCADE,
    product_id bigint NOT NULL REFERENCES products,
    quantity bigint NOT NULL
);
CREATE INDEX ON order_lines (order_id);
CREATE TABLE outbox (
    id bigserial PRIMARY KEY,
    aggregatetype text NOT NULL,  -- the topic
    aggregateid text NOT NULL,
    type text NOT NULL,
    payload jsonb NOT NULL
);
CREATE TABLE stock_movements (
    id bigserial PRIMARY KEY,
    product_id bigint NOT NULL,
    reason text NOT NULL,
    change bigint NOT NULL,
    stock bigint NOT NULL  -- behind it
);
CREATE TABLE payments (
    id bigserial PRIMARY KEY,
    order_id bigint NOT NULL,
    amount numeric(12, 2) NOT NULL,
    took interval NOT NULL,  -- since the order was placed or cancelled
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE services (
    name text PRIMARY KEY,
    handled bigint NOT NULL  -- events
);
CREATE TABLE customers (
    customer text PRIMARY KEY,
    orders bigint NOT NULL,
    units bigint NOT NULL
);
"""
_STOCKED = """
INSERT INTO stock_movements (product_id, reason, change, stock)
SELECT id, 'restock', stock, stock FROM products
"""
_ORDER = """
INSERT INTO orders (id, customer, total)
SELECT %(id)s, %(customer)s, sum(quantity * price)
FROM unnest(%(products)s::bigint[], %(quantities)s::bigint[]) AS item (product_id, quantity)
JOIN products ON products.id = product_id
"""
_LINES = """
INSERT INTO order_lines
SELECT %(id)s * 10 + number, %(id)s, product_id, quantity
FROM unnest(%(products)s::bigint[], %(quantities)s::bigint[]) WITH ORDINALITY
    AS item (product_id, quantity, number)
"""
_EVENT = """
INSERT INTO outbox (aggregatetype, aggregateid, type, payload)
SELECT %(topic)s, orders.id::text, %(kind)s, jsonb_build_object(
    'id', orders.id || '/' || %(kind)s, 'order_id', orders.id, 'customer', customer, 'kind', %(kind)s,
    'total', total::text, 'at', clock_timestamp(),
    'items', jsonb_agg(jsonb_build_object('product_id', product_id, 'quantity', quantity)))
FROM orders JOIN order_lines ON order_id = orders.id WHERE orders.id = %(id)s GROUP BY orders.id
"""
_MOVE = """
WITH moved AS (UPDATE products SET stock = stock + %(change)s WHERE id = %(product)s RETURNING id, stock)
INSERT INTO stock_movements (product_id, reason, change, stock)
SELECT id, %(reason)s, %(change)s, stock FROM moved
"""


def create(connection: Connection) -> None:
    """Make the tables, with products in them."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(_TABLES)
        cursor.executemany("INSERT INTO products VALUES (%s, %s, %s, %s, %s)", list(first_products()))
        cursor.execute(_STOCKED)


def perform(connection: Connection, act: Act) -> None:
    """Do what an act says, in one transaction."""
    with connection.transaction():
        match act:
            case PlaceOrder(id, customer, items):
                products, quantities = zip(*items, strict=True)
                values = {"id": id, "products": [*products], "quantities": [*quantities]}
                connection.execute(_ORDER, {**values, "customer": customer})
                connection.execute(_LINES, values)
                _announce(connection, id, Kind.PLACED)
            case CancelOrder(id):
                _announce(connection, id, Kind.CANCELLED)
                connection.execute("DELETE FROM orders WHERE id = %s", [id])
            case ChangePrice(product, price):
                connection.execute("UPDATE products SET price = %s WHERE id = %s", [price, product])
            case Restock(product, quantity):
                move(connection, product, quantity, "restock")


def move(connection: Connection, product: int, change: int, reason: str) -> None:
    """Change the stock of a product, and note it."""
    connection.execute(_MOVE, {"product": product, "change": change, "reason": reason})


def _announce(connection: Connection, order: int, kind: Kind) -> None:
    """Write the event into the outbox: it is there if, and only if, the transaction is committed."""
    connection.execute(_EVENT, {"id": order, "kind": kind.value, "topic": order_events.name})


def main() -> None:
    """Make the tables, and let so much happen as is asked for."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with psycopg.connect(Settings.load().dsn().value, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('products')").fetchone() == (None,):
            create(connection)
        (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM orders").fetchone() or (0,)
        traffic = Traffic(seed=last, last_order=last)
        for _ in range(count):
            perform(connection, traffic.next())


if __name__ == "__main__":
    main()
