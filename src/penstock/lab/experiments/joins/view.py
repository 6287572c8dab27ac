"""Orders and products, both of which change: the join of two tables is a view, kept right."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from penstock.documents import JsonObject
from penstock.lab.experiments.joins.kind import Kind
from penstock.lab.experiments.joins.pipelines import Order, Right, orders_of, rows_of, view_of
from penstock.log import Producer, Topic

_PRODUCTS, _ORDERS = 12, 60
_CHANGES, _GONE = 0.3, 0.12  # of a product for each order; of these, how many are deletions


class View(Kind):
    """`_orders` and `_products` are the tables as they are now; their join is what the view is to show."""

    pipeline = "tables"

    def __init__(self, prefix: str, reach: timedelta) -> None:
        super().__init__(prefix, reach)
        self._random = Random(1)  # noqa: S311
        self._orders: dict[str, tuple[str, int]] = {}  # the product, and the number of the change
        self._products: dict[str, int] = {}
        self._view: dict[str, tuple[int, int | None]] = {}
        self._versions = 0

    @property
    def topics(self) -> Sequence[Topic[Any]]:
        return orders_of(self.prefix), rows_of(self.prefix), view_of(self.prefix)

    def send(self, producer: Producer, count: int) -> None:
        for _ in range(count):
            now = datetime.now(UTC)
            if self._random.random() < _CHANGES:
                self._change_product(producer, now)
            self._change_order(producer, now)

    def _change_product(self, producer: Producer, now: datetime) -> None:
        key = f"product-{self._random.randrange(_PRODUCTS)}"
        n = self.sent["right"]
        is_deletion = key in self._products and self._random.random() < _GONE
        if is_deletion:
            producer.delete(rows_of(self.prefix), key)
        else:
            producer.send(rows_of(self.prefix), Right(key, n, now))
        with self._lock:
            if is_deletion:
                del self._products[key]
            else:
                self._products[key] = n
        self.draw_side("right", n, now, gone=is_deletion)

    def _change_order(self, producer: Producer, now: datetime) -> None:
        order = f"order-{self._random.randrange(_ORDERS)}"
        n = self.sent["left"]
        is_deletion = order in self._orders and self._random.random() < _GONE
        key = f"product-{self._random.randrange(_PRODUCTS)}"
        if is_deletion:
            producer.delete(orders_of(self.prefix), order)
        else:
            producer.send(orders_of(self.prefix), Order(order, key, n, now))
        with self._lock:
            if is_deletion:
                del self._orders[order]
            else:
                self._orders[order] = key, n
        self.draw_side("left", n, now, gone=is_deletion)

    def take(self, key: str, result: JsonObject | None) -> None:
        if result is None:
            self._view.pop(key, None)
            return
        self._view[key] = result["left"], result["right"]
        self.draw_result(*self._view[key], "alone" if result["right"] is None else "matched")

    def compare(self) -> JsonObject:
        """What is `wrong` in a view is, while both tables change, what has not arrived yet."""
        truth = {order: (n, self._products.get(key)) for order, (key, n) in self._orders.items()}
        matched = sum(1 for _, right in truth.values() if right is not None)
        agreed = [each for each in self._view.items() if truth.get(each[0]) == each[1]]
        found = sum(1 for _, (_, right) in agreed if right is not None)
        return {
            "matched": found,
            "unmatched": len(agreed) - found,
            "truth_matched": matched,
            "truth_unmatched": len(truth) - matched,
            "wrong": len(self._view) - len(agreed),
            "view": len(self._view),
        }
