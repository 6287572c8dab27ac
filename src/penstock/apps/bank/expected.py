"""What the views have to show, found plainly: event by event, in the store's order."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from penstock.apps.bank.account import ZERO, Account, account
from penstock.apps.bank.transfer import Stage, Transfer, transfer
from penstock.sourcing import Recorded

Month = tuple[str, date]


@dataclass
class Book:
    """All accounts and transfers, folded from records; months and movements beside them."""

    accounts: dict[str, Account] = field(default_factory=dict)
    transfers: dict[str, Transfer] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    months: dict[Month, tuple[Decimal, Decimal, int]] = field(default_factory=lambda: defaultdict(_nothing))
    movements: dict[str, tuple[str, Decimal]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, records: Iterable[Recorded]) -> "Book":
        """Return the book that records lead to."""
        found = cls()
        for record in records:
            found.add(record)
        return found

    def add(self, record: Recorded) -> None:
        """Write an event into the book."""
        self.ids.append(record.id)
        if record.category == transfer.category:
            state = self.transfers.get(record.stream, transfer.initial)
            self.transfers[record.stream] = transfer.fold(transfer.types.events_of(record), state)
            return
        before = self.accounts.get(record.stream, account.initial)
        after = account.fold(account.types.events_of(record), before)
        self.accounts[record.stream], self.versions[record.stream] = after, record.version
        self._move(record, after.balance - before.balance)

    def _move(self, record: Recorded, amount: Decimal) -> None:
        if amount:
            key = record.stream, record.at.date().replace(day=1)
            paid_in, paid_out, count = self.months[key]
            self.months[key] = paid_in + max(amount, ZERO), paid_out - min(amount, ZERO), count + 1
            self.movements[record.id] = record.stream, amount

    @property
    def balances(self) -> Decimal:
        """What is on all accounts together."""
        return sum((each.balance for each in self.accounts.values()), ZERO)

    @property
    def under_way(self) -> Decimal:
        """What has left a payer, and neither arrived nor come back."""
        return sum((sum(each.sending.values(), ZERO) for each in self.accounts.values()), ZERO)

    @property
    def unfinished(self) -> int:
        """How many transfers have not ended."""
        return sum(each.stage not in (Stage.COMPLETED, Stage.FAILED) for each in self.transfers.values())


def _nothing() -> tuple[Decimal, Decimal, int]:
    return ZERO, ZERO, 0
