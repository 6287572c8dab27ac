"""A transfer: money that leaves one account and comes to another, or back where it can't."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from penstock.apps.bank.account import ZERO, AmountNotPositive, Money
from penstock.sourcing import Aggregate, Command, Decision, DomainEvent, Refusal

_NAME = re.compile(r"[^\x00]{1,250}")  # as the store's streams are named


class Stage(StrEnum):
    NONE = "none"
    REQUESTED = "requested"
    PAID = "paid"  # the payer's account has sent it
    COMPLETED = "completed"
    RETURNING = "returning"  # the payee's account did not take it
    FAILED = "failed"


@dataclass(frozen=True)
class RequestTransfer(Command):
    payer: str
    payee: str
    amount: Money


@dataclass(frozen=True)
class NotePaid(Command):
    pass


@dataclass(frozen=True)
class NoteReceived(Command):
    pass


@dataclass(frozen=True)
class NoteRejected(Command):
    reason: str


@dataclass(frozen=True)
class NoteReturned(Command):
    pass


TransferCommand = RequestTransfer | NotePaid | NoteReceived | NoteRejected | NoteReturned


@dataclass(frozen=True)
class TransferRequested(DomainEvent):
    payer: str
    payee: str
    amount: Money


@dataclass(frozen=True)
class TransferPaid(DomainEvent):
    pass


@dataclass(frozen=True)
class TransferCompleted(DomainEvent):
    pass


@dataclass(frozen=True)
class PayeeRejected(DomainEvent):
    reason: str


@dataclass(frozen=True)
class TransferFailed(DomainEvent):
    reason: str


TransferEvent = TransferRequested | TransferPaid | TransferCompleted | PayeeRejected | TransferFailed


@dataclass(frozen=True)
class SameAccount(Refusal):
    account: str


@dataclass(frozen=True)
class NoAccount(Refusal):
    """A text that can't be the name of an account."""

    account: str


@dataclass(frozen=True)
class AlreadyRequested(Refusal):
    payer: str
    payee: str
    amount: Money


@dataclass(frozen=True)
class NotNow(Refusal):
    """A step that does not follow on the stage in which the transfer is."""

    stage: str


@dataclass(frozen=True)
class Transfer:
    """What a transfer's history comes to."""

    payer: str = ""
    payee: str = ""
    amount: Money = ZERO
    stage: Stage = Stage.NONE
    reason: str = ""


def decide(transfer: Transfer, command: TransferCommand) -> Decision:
    """Return the next step of a transfer."""
    match transfer.stage, command:
        case Stage.NONE, RequestTransfer():
            return _request(command)
        case _, RequestTransfer():
            return AlreadyRequested(transfer.payer, transfer.payee, transfer.amount)
        case Stage.REQUESTED, NotePaid():
            return TransferPaid()
        case Stage.REQUESTED, NoteRejected(reason):
            return TransferFailed(reason)
        case Stage.PAID, NoteReceived():
            return TransferCompleted()
        case Stage.PAID, NoteRejected(reason):
            return PayeeRejected(reason)
        case Stage.RETURNING, NoteReturned():
            return TransferFailed(transfer.reason)
    return NotNow(transfer.stage.value)


def _request(command: RequestTransfer) -> Decision:
    """Whether both accounts are open is seen when the money moves; here, whether it could ever move."""
    payer, payee = command.payer, command.payee
    nobody = next((each for each in (payer, payee) if not _NAME.fullmatch(each)), None)
    if nobody is not None:
        return NoAccount(nobody)
    if command.amount <= 0:
        return AmountNotPositive(command.amount)
    return SameAccount(payer) if payer == payee else TransferRequested(payer, payee, command.amount)


def evolve(transfer: Transfer, event: TransferEvent) -> Transfer:
    """Return the transfer after a step."""
    match event:
        case TransferRequested(payer, payee, amount):
            return Transfer(payer, payee, amount, Stage.REQUESTED)
        case TransferPaid():
            return replace(transfer, stage=Stage.PAID)
        case TransferCompleted():
            return replace(transfer, stage=Stage.COMPLETED)
        case PayeeRejected(reason):
            return replace(transfer, stage=Stage.RETURNING, reason=reason)
        case TransferFailed(reason):
            return replace(transfer, stage=Stage.FAILED, reason=reason)
        case _ as unknown:
            assert_never(unknown)


transfer = Aggregate(
    "transfer",
    initial=Transfer(),
    decide=decide,
    evolve=evolve,
    events=(TransferRequested, TransferPaid, TransferCompleted, PayeeRejected, TransferFailed),
)
