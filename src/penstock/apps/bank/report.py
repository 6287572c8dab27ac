"""What came of a run of the bank: counted from the log, nothing assumed."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import psycopg

from penstock.apps.bank.account import ZERO
from penstock.apps.bank.expected import Book
from penstock.apps.bank.transfer import Stage
from penstock.log import Consumer
from penstock.settings import Settings
from penstock.sourcing import EventStore, Recorded, topic_of

_BALANCES = "SELECT account, owner, balance, closed, version FROM bank_balances"
_STATEMENTS = "SELECT account, month, paid_in, paid_out, movements FROM bank_statements"
_MOVEMENTS = "SELECT id, account, amount FROM bank_movements"
CATEGORIES = ("account", "transfer")


@dataclass
class Report:
    """Counts in and out, how long commands took to be seen, and what does not fit."""

    events: int = 0
    accepted: int = 0
    conflicts: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)  # of transfers
    delays: list[float] = field(default_factory=list)  # seconds, of commands in the steady time
    longest: float = 0.0  # of all commands, those around the kill included
    own_write: float = 0.0
    recovered: float = 0.0
    paid_in: Decimal = ZERO
    balances: Decimal = ZERO
    under_way: Decimal = ZERO
    rows: int = 0
    differing: dict[str, int] = field(default_factory=dict)  # rows of views that the log does not give
    missing: int = 0  # events that are not on their topic
    doubled: int = 0
    disordered: int = 0

    @property
    def lost(self) -> Decimal:
        """Money that is neither on an account nor on its way."""
        return self.paid_in - self.balances - self.under_way

    @property
    def unfinished(self) -> int:
        over = self.ends[Stage.COMPLETED.value] + self.ends[Stage.FAILED.value]
        return self.ends.total() - over

    @property
    def complete(self) -> bool:
        """Whether all is as it has to be."""
        wrong = self.unfinished + sum(self.differing.values()) + self.missing + self.doubled + self.disordered
        return self.events > 0 and not wrong and not self.lost and not self.under_way


def compare(report: Report, book: Book, settings: Settings) -> None:
    """Compare the views with the book, row by row."""
    with psycopg.connect(settings.dsn().value) as connection:
        found = dict(_views(connection))
    due = _due(book)
    report.rows = sum(map(len, due.values()))
    report.differing = {view: _differing(due[view], found[view]) for view in due}


def _due(book: Book) -> dict[str, dict[Any, Any]]:
    balances = {
        name: (each.owner, each.balance, each.closed, book.versions[name])
        for name, each in book.accounts.items()
    }
    return {"balances": balances, "statements": dict(book.months), "movements": book.movements}


def _views(connection: "psycopg.Connection[Any]") -> Iterator[tuple[str, dict[Any, Any]]]:
    yield "balances", {name: tuple(rest) for name, *rest in connection.execute(_BALANCES)}
    months = connection.execute(_STATEMENTS)
    yield "statements", {(name, month): tuple(rest) for name, month, *rest in months}
    yield "movements", {id: tuple(rest) for id, *rest in connection.execute(_MOVEMENTS)}


def _differing(due: dict[Any, Any], found: dict[Any, Any]) -> int:
    return sum(due.get(key) != found.get(key) for key in {*due, *found})


def read_topics(report: Report, book: Book, store: EventStore) -> None:
    """See that every event is on its topic, once, and behind those that it follows."""
    seen: Counter[str] = Counter()
    newest: dict[tuple[str, str], int] = {}
    for record in published(store):
        seen[record.id] += 1
        key = record.category, record.stream
        report.disordered += record.version != newest.get(key, 0) + 1
        newest[key] = record.version
    report.missing = len({*book.ids} - {*seen})
    report.doubled = seen.total() - len(seen)


def published(store: EventStore) -> Iterator[Recorded]:
    """Yield what is on the store's topics."""
    for category in CATEGORIES:
        with Consumer(topic_of(store.name, category), store.settings) as consumer:
            for record in consumer.records(idle="2 seconds"):
                if record.event is not None:
                    yield record.event
