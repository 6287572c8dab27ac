"""An account: what may be done with it, and what follows from its history."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, assert_never

from penstock.events import Precision
from penstock.sourcing import Aggregate, Command, Decision, DomainEvent, Refusal

Money = Annotated[Decimal, Precision(18, 2)]
ZERO = Decimal("0.00")


@dataclass(frozen=True)
class Open(Command):
    owner: str


@dataclass(frozen=True)
class Deposit(Command):
    amount: Money


@dataclass(frozen=True)
class Withdraw(Command):
    amount: Money


@dataclass(frozen=True)
class SendMoney(Command):
    """Take the money of a transfer from its payer."""

    transfer: str
    amount: Money


@dataclass(frozen=True)
class ReceiveMoney(Command):
    """Give the money of a transfer to its payee, or back to its payer."""

    transfer: str
    amount: Money


@dataclass(frozen=True)
class Close(Command):
    pass


AccountCommand = Open | Deposit | Withdraw | SendMoney | ReceiveMoney | Close


@dataclass(frozen=True)
class Opened(DomainEvent):
    owner: str


@dataclass(frozen=True)
class Deposited(DomainEvent):
    amount: Money


@dataclass(frozen=True)
class Withdrawn(DomainEvent):
    amount: Money


@dataclass(frozen=True)
class MoneySent(DomainEvent):
    transfer: str
    amount: Money


@dataclass(frozen=True)
class MoneyReceived(DomainEvent):
    transfer: str
    amount: Money


@dataclass(frozen=True)
class Closed(DomainEvent):
    pass


AccountEvent = Opened | Deposited | Withdrawn | MoneySent | MoneyReceived | Closed


@dataclass(frozen=True)
class NotOpen(Refusal):
    pass


@dataclass(frozen=True)
class AlreadyOpen(Refusal):
    owner: str


@dataclass(frozen=True)
class AccountClosed(Refusal):
    pass


@dataclass(frozen=True)
class AmountNotPositive(Refusal):
    amount: Money


@dataclass(frozen=True)
class InsufficientFunds(Refusal):
    balance: Money
    asked: Money


@dataclass(frozen=True)
class MoneyLeft(Refusal):
    """An account is closed when it is empty."""

    balance: Money


@dataclass(frozen=True)
class Account:
    """What an account's history comes to."""

    owner: str = ""
    balance: Money = ZERO
    closed: bool = False


def decide(account: Account, command: AccountCommand) -> Decision:
    """Return what a command leads to; an account that is not open takes none but the one to open it."""
    if isinstance(command, Open):
        return AlreadyOpen(account.owner) if account.owner else Opened(command.owner)
    if not account.owner:
        return NotOpen()
    if account.closed:
        return AccountClosed()
    if isinstance(command, Close):
        return MoneyLeft(account.balance) if account.balance else Closed()
    if command.amount <= 0:
        return AmountNotPositive(command.amount)
    match command:
        case Deposit(amount):
            return Deposited(amount)
        case ReceiveMoney(transfer, amount):
            return MoneyReceived(transfer, amount)
        case Withdraw() | SendMoney() if command.amount > account.balance:
            return InsufficientFunds(account.balance, command.amount)
        case Withdraw(amount):
            return Withdrawn(amount)
        case SendMoney(transfer, amount):
            return MoneySent(transfer, amount)
        case _ as unknown:
            assert_never(unknown)


def evolve(account: Account, event: AccountEvent) -> Account:
    """Return the account after an event."""
    match event:
        case Opened(owner):
            return Account(owner)
        case Closed():
            return replace(account, closed=True)
        case Deposited(amount) | MoneyReceived(_, amount):
            return replace(account, balance=account.balance + amount)
        case Withdrawn(amount) | MoneySent(_, amount):
            return replace(account, balance=account.balance - amount)
        case _ as unknown:
            assert_never(unknown)


account = Aggregate(
    "account",
    initial=Account(),
    decide=decide,
    evolve=evolve,
    events=(Opened, Deposited, Withdrawn, MoneySent, MoneyReceived, Closed),
)
