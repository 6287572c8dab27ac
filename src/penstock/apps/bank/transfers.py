"""Transfers at work: each event of a transfer leads to its next step, and a refusal to the way back."""

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.apps.bank.account import (
    Account,
    AccountCommand,
    ReceiveMoney,
    ReturnMoney,
    SendMoney,
    SettleTransfer,
    account,
)
from penstock.apps.bank.transfer import (
    NotePaid,
    NoteReceived,
    NoteRejected,
    NoteReturned,
    NotNow,
    Stage,
    Transfer,
    TransferCommand,
    transfer,
)
from penstock.errors import InternalError
from penstock.sourcing import (
    CommandHandler,
    Directed,
    DomainEvent,
    EventStore,
    Process,
    Reaction,
    Recorded,
    Refusal,
)

NAME = "transfers"


@dataclass(frozen=True)
class Step:
    """What a transfer needs next: commands for accounts, and its own note, all done together."""

    accounts: tuple[tuple[str, AccountCommand], ...]
    note: TransferCommand
    may_fail: bool = True

    def instead(self, refusal: Refusal) -> TransferCommand | None:
        """Return what is noted where the step is refused; nothing if the transfer has gone on already."""
        if isinstance(refusal, NotNow):
            return None
        if not self.may_fail:
            raise InternalError(f"money can't go back to {self.accounts[0][0]!r}: {refusal}")
        return NoteRejected(str(refusal))


def next_step(id: str, state: Transfer) -> Step | None:
    """Return what comes next for a transfer, or None when it is over.

    The payer's account stays open as long as its money is on the way, so that it can always come back.
    """
    match state.stage:
        case Stage.REQUESTED:
            return Step(((state.payer, SendMoney(id, state.amount)),), NotePaid())
        case Stage.PAID:
            receive, settle = ReceiveMoney(id, state.amount), SettleTransfer(id)
            return Step(((state.payee, receive), (state.payer, settle)), NoteReceived())
        case Stage.RETURNING:
            return Step(((state.payer, ReturnMoney(id)),), NoteReturned(), may_fail=False)
    return None


class Bank:
    """Handlers of the bank's commands, and the process that carries transfers out."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self.accounts: CommandHandler[Account] = CommandHandler(store, account)
        self.transfers: CommandHandler[Transfer] = CommandHandler(store, transfer)

    def process(self) -> Process:
        """Return the process: one at a time runs, wherever it is started."""
        return Process(NAME, self.store, [transfer], self._react)

    def _react(self, record: Recorded, _: DomainEvent) -> Iterator[Reaction]:
        """What follows is a matter of the stage that the event has led to, whatever has come since."""
        stage = self.transfers.load(record.stream, to=record.version).state
        step = next_step(record.stream, stage)
        if step is not None:
            yield self._reaction(record.stream, step)

    def _reaction(self, id: str, step: Step) -> Reaction:
        moves = tuple(Directed(self.accounts, name, command) for name, command in step.accounts)

        def otherwise(refusal: Refusal) -> tuple[Directed, ...]:
            note = step.instead(refusal)
            return () if note is None else (Directed(self.transfers, id, note),)

        # The note comes first: where the transfer has gone on, that is the refusal, not an account's.
        return Reaction((Directed(self.transfers, id, step.note), *moves), otherwise)
