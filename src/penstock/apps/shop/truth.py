"""What the services and the alerts have to come to, by SQL over the shop's own tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import LiteralString

from penstock.apps.shop.database import Connection
from penstock.apps.shop.events import low_stock
from penstock.log import Consumer
from penstock.settings import Settings

Falls = Mapping[int, list[int]]  # of each product, the stocks with which it fell under its threshold

# Rows that are not as they have to be: an order's payments, a product's stock, a customer's totals.
_WRONG: dict[str, LiteralString] = {
    "payment": """
        SELECT count(*) FROM orders o FULL JOIN (
            SELECT order_id, sum(amount) AS paid, count(*) AS times FROM payments GROUP BY order_id
        ) p ON p.order_id = o.id
        WHERE CASE WHEN o.id IS NULL THEN p.paid <> 0 OR p.times <> 2
            ELSE o.status <> 'paid' OR p.paid IS DISTINCT FROM o.total OR p.times <> 1 END
    """,
    "inventory": """
        SELECT count(*) FROM products p
        JOIN (
            SELECT product_id, sum(change) AS come FROM stock_movements WHERE reason = 'restock' GROUP BY 1
        ) r ON r.product_id = p.id
        LEFT JOIN (
            SELECT product_id, sum(quantity) AS sold FROM order_lines GROUP BY 1
        ) l ON l.product_id = p.id
        WHERE p.stock <> r.come - coalesce(l.sold, 0)
    """,
    "analytics": """
        SELECT count(*) FROM (
            SELECT customer, count(DISTINCT o.id) AS orders, sum(quantity) AS units
            FROM orders o JOIN order_lines l ON l.order_id = o.id GROUP BY customer
        ) s FULL JOIN customers c ON c.customer = s.customer
        WHERE (coalesce(s.orders, 0), coalesce(s.units, 0))
            <> (coalesce(c.orders, 0), coalesce(c.units, 0))
    """,
}
_FALLS = """
SELECT product_id, stock FROM (
    SELECT m.id, product_id, m.stock, threshold,
        lag(m.stock) OVER (PARTITION BY product_id ORDER BY m.id) AS before
    FROM stock_movements m JOIN products p ON p.id = m.product_id
) moved
WHERE stock < threshold AND coalesce(before >= threshold, true) ORDER BY id
"""


_HANDLED = """
SELECT name, handled FROM services UNION ALL SELECT 'all', count(*) FROM outbox
"""


def handled_events(connection: Connection) -> dict[str, int]:
    """How many events there are, as "all", and how many of them each service has handled."""
    return dict(connection.execute(_HANDLED).fetchall())


def payment_times(connection: Connection, since: datetime, until: datetime | None) -> list[float]:
    """How many seconds payments took that were made in a time."""
    query = "SELECT extract(epoch FROM took) FROM payments WHERE at BETWEEN %s AND coalesce(%s, now())"
    return [float(seconds) for (seconds,) in connection.execute(query, [since, until])]


def wrong_rows(connection: Connection) -> dict[str, int]:
    """How many rows of each service are not as they have to be."""
    return {name: _number(connection, query) for name, query in _WRONG.items()}


def expected_falls(connection: Connection) -> Falls:
    """When each product fell under its threshold, by the movements of its stock."""
    return _by_product((product, stock) for product, stock in connection.execute(_FALLS))


def alerted_falls(settings: Settings) -> Falls:
    """When each product did by the alerts, in their order; an alert that was emitted twice is there twice."""
    with Consumer(low_stock, settings) as consumer:
        found = [record.event for record in consumer.records(idle="1 second") if record.event]
    return _by_product((alert.product_id, alert.stock) for alert in found)


def _by_product(falls: Iterable[tuple[int, int]]) -> Falls:
    found: dict[int, list[int]] = defaultdict(list)
    for product, stock in falls:
        found[product].append(stock)
    return found


def _number(connection: Connection, query: LiteralString) -> int:
    (number,) = connection.execute(query).fetchone() or (0,)
    return int(number)
