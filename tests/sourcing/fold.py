"""What the log of the store comes to, event by event, without a line of the store's own code."""

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import psycopg

from penstock.apps.bank.pipeline import STORE
from penstock.settings import Settings

ZERO = Decimal(0)
SIGNS = {"Deposited": 1, "MoneyReceived": 1, "MoneyReturned": 1, "Withdrawn": -1, "MoneySent": -1}
OVER = ("TransferCompleted", "TransferFailed")
_EVENTS = "select record, command from {}.events order by transaction, sequence"


@dataclass
class Fold:
    """Accounts, months, movements and transfers, by their names."""

    events: list[dict[str, Any]] = field(default_factory=list)
    commands: set[str] = field(default_factory=set)
    versions: dict[tuple[str, str], int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    balances: dict[str, Decimal] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    months: dict[tuple[str, date], tuple[Decimal, Decimal, int]] = field(default_factory=dict)
    movements: dict[str, tuple[str, Decimal]] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)  # of each transfer, its newest event
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    disordered: int = 0

    def add(self, record: dict[str, Any], data: dict[str, Any], command: str | None) -> None:
        stream, type = record["stream"], record["type"]
        place = record["category"], stream
        self.events.append(record)
        self.commands |= {command} - {None}
        self.disordered += record["version"] != self.versions.get(place, 0) + 1
        self.versions[place] = record["version"]
        if record["category"] == "transfer":
            self.ends[stream] = type
            return
        self._add_to_account(record, stream, type, data)

    def _add_to_account(self, record: dict[str, Any], stream: str, type: str, data: dict[str, Any]) -> None:
        amount = SIGNS.get(type, 0) * Decimal(data.get("amount", 0))
        self.balances[stream] = self.balances.get(stream, ZERO) + amount
        if type == "Opened":
            self.owners[stream] = data["owner"]
        if type == "Closed":
            self.closed.add(stream)
        if "transfer" in data:
            self.moves[data["transfer"], type] += 1
        if amount:
            month = stream, date.fromisoformat(record["at"][:7] + "-01")
            paid_in, paid_out, count = self.months.get(month, (ZERO, ZERO, 0))
            self.months[month] = paid_in + max(amount, ZERO), paid_out - min(amount, ZERO), count + 1
            self.movements[record["id"]] = stream, amount

    @property
    def unfinished(self) -> list[str]:
        return [id for id, type in self.ends.items() if type not in OVER]

    def views(self) -> dict[str, dict[Any, tuple[Any, ...]]]:
        """What the projections have to show."""
        balances = {
            name: (self.owners[name], balance, name in self.closed, self.versions["account", name])
            for name, balance in self.balances.items()
        }
        return {"balances": balances, "statements": dict(self.months), "movements": dict(self.movements)}


def folded(settings: Settings) -> Fold:
    """Read the table of events plainly, and fold it."""
    found = Fold()
    with psycopg.connect(settings.dsn().value) as connection:
        for record, command in connection.execute(_EVENTS.format(STORE)):
            found.add(record, json.loads(record["data"]), command)
    return found
