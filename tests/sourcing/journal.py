"""What a clerk sent to the bank and what came of it, in a file that survives the clerk."""

import json
import os
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

ACCEPTED, REFUSED = "accepted", "refused"


@dataclass(frozen=True)
class Order:
    """A command that a clerk sends, however often, under one id."""

    id: str
    what: str
    account: str
    amount: str = "0"
    payee: str = ""

    @property
    def paid_in(self) -> Decimal:
        """What it brings to the bank once it is accepted."""
        signs = {"deposit": 1, "wages": 1, "withdraw": -1}
        return signs.get(self.what, 0) * Decimal(self.amount)


class Journal:
    """The orders of one clerk, each written down before it is sent, and again with its outcome.

    A kill leaves at most the last one open: whether it was done, nobody knows.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.orders, self.outcomes = read(path)

    @property
    def open(self) -> Order | None:
        """The order that was sent before the clerk was killed."""
        return next((each for each in self.orders.values() if each.id not in self.outcomes), None)

    def begin(self, order: Order) -> Order:
        self.orders[order.id] = order
        self._write(asdict(order))
        return order

    def end(self, order: Order, outcome: str) -> None:
        self.outcomes[order.id] = outcome
        self._write({"id": order.id, "outcome": outcome})

    def _write(self, entry: dict[str, str]) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")


def read(path: Path) -> tuple[dict[str, Order], dict[str, str]]:
    """Return a journal's orders and their outcomes, by id."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    orders = {each["id"]: Order(**each) for each in entries if "what" in each}
    return orders, {each["id"]: each["outcome"] for each in entries if "outcome" in each}
