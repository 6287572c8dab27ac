"""A shop in memory, changed by the same acts as its database: what flows see of it, and what they owe."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from penstock.apps.shop.events import Line, Order, Product, SoldLine
from penstock.apps.shop.traffic import STOCK, CancelOrder, ChangePrice, PlaceOrder, Restock, first_products
from penstock.testing import Sent, Tombstone

START = datetime(2026, 1, 1, tzinfo=UTC)


class Books:
    """`changes` has what a capture would write of each table; orders take their items from the stock."""

    def __init__(self, first_stock=STOCK):
        self.products, self.orders, self.lines = {}, {}, {}
        self.changes = {"products": [], "orders": [], "lines": []}
        self.falls = []
        self._acts = 0
        for id, name, price, _, threshold in first_products():
            self._put("products", Product(id, name, price, first_stock, threshold))

    def perform(self, act):
        self._acts += 1
        match act:
            case PlaceOrder(id, customer, items):
                self._put("orders", Order(id, customer, "paid", self._at))
                for number, (product, quantity) in enumerate(items, 1):
                    self._put("lines", Line(id * 10 + number, id, product, quantity))
                    self._move(product, -quantity)
            case CancelOrder(id):
                for line in [each for each in self.lines.values() if each.order_id == id]:
                    self._remove("lines", line.id)
                    self._move(line.product_id, line.quantity)
                self._remove("orders", id)
            case ChangePrice(product, price):
                self._put("products", replace(self.products[product], price=price))
            case Restock(product, quantity):
                self._move(product, quantity)

    @property
    def view(self):
        """Every line with its order and its product, as the view has to have it."""
        return {line.id: self._viewed(line) for line in self.lines.values()}

    @property
    def sold(self):
        """Every line with its order, as the first of the two joins has to have it."""
        return [self._sold(line, self.orders[line.order_id]) for line in self.lines.values()]

    def _sold(self, line, order):
        of_order = (order.id, order.customer, order.status, order.placed)
        return SoldLine(line.id, *of_order, line.product_id, line.quantity)

    def _viewed(self, line):
        order, product = self.orders[line.order_id], self.products[line.product_id]
        amount = (line.quantity * product.price).quantize(Decimal("0.01"))
        of_order = (line.id, order.id, order.customer, order.status, order.placed)
        return (*of_order, product.id, product.name, line.quantity, product.price, amount)

    @property
    def _at(self):
        return START + timedelta(seconds=self._acts)

    def _move(self, product, change):
        before = self.products[product]
        after = replace(before, stock=before.stock + change)
        if after.stock < after.threshold <= before.stock:
            self.falls.append((product, after.stock))
        self._put("products", after)

    def _put(self, table, row):
        getattr(self, table)[row.id] = row
        self.changes[table].append(Sent(row, written=self._at))

    def _remove(self, table, id):
        del getattr(self, table)[id]
        self.changes[table].append(Tombstone(id, written=self._at))
