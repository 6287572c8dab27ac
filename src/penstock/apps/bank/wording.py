"""Refusals in the words of a bank's counter."""

from penstock.apps.bank.account import (
    AccountClosed,
    AlreadyOpen,
    AmountNotPositive,
    InsufficientFunds,
    MoneyLeft,
    NoOwner,
    NotOpen,
    TransferUnderWay,
)
from penstock.apps.bank.transfer import AlreadyRequested, NoAccount, SameAccount
from penstock.sourcing import Refusal


def worded(refusal: Refusal) -> str:
    """Return why something was refused, as a sentence.

    >>> from decimal import Decimal
    >>> worded(InsufficientFunds(Decimal("5.00"), Decimal("12.50")))
    'there is 5.00, and 12.50 was asked for'
    """
    return _of_account(refusal) or _of_transfer(refusal) or str(refusal)


def _of_account(refusal: Refusal) -> str | None:
    match refusal:
        case NotOpen():
            return "there is no such account"
        case AlreadyOpen(owner):
            return f"the account was opened before, for {owner}"
        case NoOwner():
            return "an account has an owner"
        case AccountClosed():
            return "the account is closed"
        case AmountNotPositive(amount):
            return f"{amount} is not an amount above zero"
        case InsufficientFunds(balance, asked):
            return f"there is {balance}, and {asked} was asked for"
        case MoneyLeft(balance):
            return f"{balance} is left in the account"
        case TransferUnderWay(transfer):
            return f"the transfer {transfer} is under way, and its money may come back"
    return None


def _of_transfer(refusal: Refusal) -> str | None:
    match refusal:
        case SameAccount(account):
            return f"{account} can't pay itself"
        case NoAccount(account):
            return f"{account!r} can't be an account"
        case AlreadyRequested(payer, payee, amount):
            return f"this transfer was asked for before: {amount} from {payer} to {payee}"
    return None
