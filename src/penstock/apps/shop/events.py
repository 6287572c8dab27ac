"""What the shop's flows and services read and write: captured rows, the order view, events, alerts."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated

from penstock.events import Event, Precision
from penstock.log import Table, Topic

Money = Annotated[Decimal, Precision(12, 2)]


@dataclass(frozen=True)
class Product(Event):
    """A row of `products`."""

    id: int  # type: ignore[assignment]  # the row's own
    name: str
    price: Money
    stock: int
    threshold: int


@dataclass(frozen=True)
class Order(Event):
    """A row of `orders`."""

    id: int  # type: ignore[assignment]  # the row's own
    customer: str
    status: str
    placed: datetime


@dataclass(frozen=True)
class Line(Event):
    """A row of `order_lines`."""

    id: int  # type: ignore[assignment]  # the row's own
    order_id: int
    product_id: int
    quantity: int


@dataclass(frozen=True)
class SoldLine(Event):
    """A line with its order."""

    line_id: int
    order_id: int
    customer: str
    status: str
    placed: datetime
    product_id: int
    quantity: int


@dataclass(frozen=True)
class ViewedLine(Event):
    """A line with its order and its product, at the price of today."""

    line_id: int
    order_id: int
    customer: str
    status: str
    placed: datetime
    product_id: int
    product: str
    quantity: int
    price: Money
    amount: Money


class Kind(Enum):
    """What became of an order."""

    PLACED = "placed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Item:
    """So many of a product."""

    product_id: int
    quantity: int


@dataclass(frozen=True)
class OrderEvent(Event):
    """An order was placed or cancelled; written by the shop in the transaction that did it."""

    order_id: int
    customer: str
    kind: Kind
    total: Money
    items: list[Item]
    at: datetime


@dataclass(frozen=True)
class LowStock(Event):
    """The stock of a product has fallen under its threshold."""

    product_id: int
    product: str
    stock: int
    threshold: int
    at: datetime


CAPTURE = "shop"
TABLES = ("public.products", "public.orders", "public.order_lines")
OUTBOX = "public.outbox"

products = Table("shop.public.products", Product, key="id", format="debezium-json")
orders = Table("shop.public.orders", Order, key="id", format="debezium-json")
lines = Table("shop.public.order_lines", Line, key="id", format="debezium-json")
sold_lines = Table("shop.sold-lines", SoldLine, key="line_id", time="placed")
order_view = Table("shop.order-view", ViewedLine, key="line_id", time="placed")
order_events = Topic("shop.order-events", OrderEvent, key="order_id")
low_stock = Topic("shop.low-stock", LowStock, key="product_id")
