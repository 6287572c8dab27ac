"""The book of one account, line by line, out of its stream."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from penstock.apps.bank.account import ZERO, account
from penstock.sourcing import Recorded


@dataclass(frozen=True)
class Line:
    """One event of an account: what it moved, and what was there then."""

    version: int
    at: datetime
    type: str
    amount: Decimal
    balance: Decimal
    transfer: str | None
    actor: str | None


@dataclass(frozen=True)
class Statement:
    """A month of an account: what was there before, what moved, and what was there then."""

    month: str
    before: Decimal
    lines: tuple[Line, ...]

    @property
    def paid_in(self) -> Decimal:
        return sum((each.amount for each in self.lines if each.amount > 0), ZERO)

    @property
    def paid_out(self) -> Decimal:
        return -sum((each.amount for each in self.lines if each.amount < 0), ZERO)

    @property
    def after(self) -> Decimal:
        return self.before + self.paid_in - self.paid_out


def lines(records: Iterable[Recorded]) -> Iterator[Line]:
    """Yield a line for each event of an account."""
    state = account.initial
    for record in records:
        for event in account.types.events_of(record):
            after = account.evolve(state, event)
            moved, transfer = after.balance - state.balance, getattr(event, "transfer", None)
            yield Line(record.version, record.at, record.type, moved, after.balance, transfer, record.actor)
            state = after


def statement(book: Iterable[Line], month: str) -> Statement:
    """Return the statement of a month, as 2026-11."""
    found = Statement(month, ZERO, ())
    for line in book:
        if f"{line.at:%Y-%m}" < month:
            found = replace(found, before=line.balance)
        elif f"{line.at:%Y-%m}" == month and line.amount:
            found = replace(found, lines=(*found.lines, line))
    return found
