"""What happens in the shop: orders, cancellations, new prices and restocking; the same for the same seed."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from random import Random

PRODUCTS, CUSTOMERS = 200, 250
STOCK, THRESHOLD = 25, 10
_RECENT = 60  # orders, of which one may be cancelled
_WORDS = (("oak", "steel", "linen", "glass", "cork"), ("desk", "lamp", "chair", "stool", "vase", "clock"))


@dataclass(frozen=True)
class PlaceOrder:
    """`items` are products and how many of each."""

    order_id: int
    customer: str
    items: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class CancelOrder:
    order_id: int


@dataclass(frozen=True)
class ChangePrice:
    product_id: int
    price: Decimal


@dataclass(frozen=True)
class Restock:
    product_id: int
    quantity: int


Act = PlaceOrder | CancelOrder | ChangePrice | Restock


def first_products() -> Iterator[tuple[int, str, Decimal, int, int]]:
    """Yield the rows that `products` has at first."""
    materials, things = _WORDS
    for number in range(PRODUCTS):
        name = f"{materials[number % len(materials)]} {things[number % len(things)]} {number}"
        yield number, name, Decimal(500 + 37 * number) / 100, STOCK, THRESHOLD


class Traffic:
    """An endless stream of acts; an order that was placed is cancelled once at most.

    Orders are numbered from behind `last_order` on.
    """

    def __init__(self, seed: int = 1, last_order: int = 0) -> None:
        self.made = self.placed = self.cancelled = self.prices = 0
        self._last_order = last_order
        self._random = Random(seed)  # noqa: S311
        self._recent: deque[int] = deque(maxlen=_RECENT)

    def next(self) -> Act:
        """Return what happens next: mostly orders."""
        self.made += 1
        chance = self._random.random()
        if chance < 0.1 and self._recent:
            return self._cancel()
        if chance < 0.13:
            return self._price()
        if chance < 0.25:
            return Restock(self._product(), self._random.randrange(15, 36))
        return self._place()

    def _place(self) -> PlaceOrder:
        self.placed += 1
        order = self._last_order + self.placed
        self._recent.append(order)
        chosen = self._random.sample(range(PRODUCTS), self._random.randrange(1, 5))
        items = tuple((product, self._random.randrange(1, 4)) for product in chosen)
        return PlaceOrder(order, f"customer-{self._random.randrange(CUSTOMERS):03d}", items)

    def _cancel(self) -> CancelOrder:
        self.cancelled += 1
        order = self._random.choice(self._recent)
        self._recent.remove(order)
        return CancelOrder(order)

    def _price(self) -> ChangePrice:
        self.prices += 1
        return ChangePrice(self._product(), Decimal(self._random.randrange(100, 10_000)) / 100)

    def _product(self) -> int:
        return self._random.randrange(PRODUCTS)
