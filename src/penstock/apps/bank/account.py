"""An account: what may be done with it, and what follows from its history."""

from dataclasses import dataclass, field, replace
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
    """Give the money of a transfer to its payee."""

    transfer: str
    amount: Money


@dataclass(frozen=True)
class SettleTransfer(Command):
    """Let the payer know that the payee has the money."""

    transfer: str


@dataclass(frozen=True)
class ReturnMoney(Command):
    """Give the money of a transfer back to its payer."""

    transfer: str


@dataclass(frozen=True)
class Close(Command):
    pass


Movement = Deposit | Withdraw | SendMoney | ReceiveMoney
AccountCommand = Open | Movement | SettleTransfer | ReturnMoney | Close


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
class TransferSettled(DomainEvent):
    transfer: str


@dataclass(frozen=True)
class MoneyReturned(DomainEvent):
    transfer: str
    amount: Money


@dataclass(frozen=True)
class Closed(DomainEvent):
    pass


AccountEvent = (
    Opened | Deposited | Withdrawn | MoneySent | MoneyReceived | TransferSettled | MoneyReturned | Closed
)


@dataclass(frozen=True)
class NotOpen(Refusal):
    pass


@dataclass(frozen=True)
class AlreadyOpen(Refusal):
    owner: str


@dataclass(frozen=True)
class NoOwner(Refusal):
    pass


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
class TransferUnderWay(Refusal):
    """An account whose money is on its way may get it back, and stays open for that."""

    transfer: str


@dataclass(frozen=True)
class AlreadySent(Refusal):
    transfer: str


@dataclass(frozen=True)
class NotSent(Refusal):
    """The account has no money on its way in this transfer."""

    transfer: str


@dataclass(frozen=True)
class Account:
    """What an account's history comes to; `sending` is the money that has left, but not arrived yet."""

    owner: str = ""
    balance: Money = ZERO
    closed: bool = False
    sending: dict[str, Money] = field(default_factory=dict)


def decide(account: Account, command: AccountCommand) -> Decision:
    """Return what a command leads to; an account that is not open takes none but the one to open it."""
    if isinstance(command, Open):
        return _open(account, command)
    if not account.owner:
        return NotOpen()
    if account.closed:
        return AccountClosed()
    match command:
        case Close():
            return _close(account)
        case SettleTransfer(transfer) | ReturnMoney(transfer) if transfer not in account.sending:
            return NotSent(transfer)
        case SettleTransfer(transfer):
            return TransferSettled(transfer)
        case ReturnMoney(transfer):
            return MoneyReturned(transfer, account.sending[transfer])
        case _:
            return _move(account, command)


def _open(account: Account, command: Open) -> Decision:
    if account.owner:
        return AlreadyOpen(account.owner)
    return Opened(command.owner) if command.owner.strip() else NoOwner()


def _close(account: Account) -> Decision:
    if account.balance:
        return MoneyLeft(account.balance)
    return TransferUnderWay(min(account.sending)) if account.sending else Closed()


def _move(account: Account, command: Movement) -> Decision:
    """Return how money moves, where it is there and may."""
    if command.amount <= 0:
        return AmountNotPositive(command.amount)
    match command:
        case Deposit(amount):
            return Deposited(amount)
        case ReceiveMoney(transfer, amount):
            return MoneyReceived(transfer, amount)
        case SendMoney(transfer) if transfer in account.sending:
            return AlreadySent(transfer)
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
        case Withdrawn(amount):
            return replace(account, balance=account.balance - amount)
        case MoneySent(transfer, amount):
            sending = {**account.sending, transfer: amount}
            return replace(account, balance=account.balance - amount, sending=sending)
        case TransferSettled(transfer):
            return replace(account, sending=_without(account.sending, transfer))
        case MoneyReturned(transfer, amount):
            sending = _without(account.sending, transfer)
            return replace(account, balance=account.balance + amount, sending=sending)
        case _ as unknown:
            assert_never(unknown)


def _without(sending: dict[str, Money], transfer: str) -> dict[str, Money]:
    return {each: amount for each, amount in sending.items() if each != transfer}


account = Aggregate(
    "account",
    initial=Account(),
    decide=decide,
    evolve=evolve,
    events=(
        Opened,
        Deposited,
        Withdrawn,
        MoneySent,
        MoneyReceived,
        TransferSettled,
        MoneyReturned,
        Closed,
    ),
)
