"""Transfers without a store: over random histories no money is lost or made, and each transfer ends."""

from decimal import Decimal

import pytest
from hypothesis import given as given_random
from hypothesis import settings
from hypothesis import strategies as st

from penstock.apps.bank.account import (
    AccountClosed,
    AlreadySent,
    Close,
    Deposit,
    Deposited,
    MoneyReturned,
    MoneySent,
    NoOwner,
    NotOpen,
    NotSent,
    Open,
    Opened,
    ReturnMoney,
    SendMoney,
    SettleTransfer,
    TransferSettled,
    TransferUnderWay,
    Withdraw,
    account,
)
from penstock.apps.bank.transfer import (
    AlreadyRequested,
    NoAccount,
    NoteReceived,
    NoteRejected,
    NotNow,
    PayeeRejected,
    RequestTransfer,
    SameAccount,
    Stage,
    Transfer,
    TransferCompleted,
    TransferPaid,
    TransferRequested,
    transfer,
)
from penstock.apps.bank.transfers import next_step
from penstock.errors import InternalError
from penstock.sourcing import Refusal
from penstock.testing import check_aggregate, given

TEN = Decimal("10.00")
PAID_OUT = (Opened("Ada"), Deposited(TEN), MoneySent("t", TEN))
NAMES = ("ada", "bob", "cy", "dora")


class Model:
    """Accounts and transfers in memory: what a step asks for is done to all of its streams, or to none."""

    def __init__(self):
        self.accounts, self.transfers, self.paid_in = {}, {}, Decimal(0)

    def do(self, name, command):
        return self._apply([(account, self.accounts, name, command)])

    def request(self, id, command):
        return self._apply([(transfer, self.transfers, id, command)])

    def step(self, id):
        """Do a transfer's next step, or what is to be done instead; returns whether there was one."""
        step = next_step(id, self.transfers.get(id, transfer.initial))
        if step is None:
            return False
        moves = [(account, self.accounts, name, command) for name, command in step.accounts]
        refused = self._apply([(transfer, self.transfers, id, step.note), *moves])
        if refused is not None:
            assert self._apply([(transfer, self.transfers, id, step.instead(refused))]) is None
        return True

    def _apply(self, commands):
        after = []
        for aggregate, streams, name, command in commands:
            state = streams.get(name, aggregate.initial)
            decided = aggregate.decided(state, command)
            if isinstance(decided, Refusal):
                return decided
            after.append((streams, name, aggregate.fold(decided, state)))
        for streams, name, state in after:
            streams[name] = state
        self.paid_in += sum(_paid_in(command) for *_, command in commands)
        return None

    @property
    def balances(self):
        return sum(each.balance for each in self.accounts.values())

    @property
    def under_way(self):
        """What has left a payer and not arrived, by the accounts; by the transfers, it has to be the same."""
        sending = {id: amount for each in self.accounts.values() for id, amount in each.sending.items()}
        stages = (Stage.PAID, Stage.RETURNING)
        assert sending == {id: each.amount for id, each in self.transfers.items() if each.stage in stages}
        return sum(sending.values())


def _paid_in(command):
    match command:
        case Deposit(amount):
            return amount
        case Withdraw(amount):
            return -amount
    return 0


names, amounts = st.sampled_from(NAMES), st.decimals(-1, 60, places=2)
ids = st.sampled_from([f"t{number}" for number in range(6)])
actions = st.one_of(
    st.tuples(names, st.builds(Open, names)),
    st.tuples(names, st.builds(Deposit, amounts)),
    st.tuples(names, st.builds(Withdraw, amounts)),
    st.tuples(names, st.just(Close())),
    st.tuples(ids, st.builds(RequestTransfer, names, names, amounts)),
    st.tuples(ids, st.none()),
    st.tuples(ids, st.none()),
)


@settings(max_examples=300, deadline=None)
@given_random(st.lists(actions, max_size=60))
def test_over_random_histories_money_is_conserved_and_every_transfer_ends(history):
    bank = Model()
    for name in NAMES[:3]:
        bank.do(name, Open(name))
        bank.do(name, Deposit(TEN * 5))
    for name, command in history:
        if command is None:
            bank.step(name)
        elif isinstance(command, RequestTransfer):
            bank.request(name, command)
        else:
            bank.do(name, command)
        assert bank.balances + bank.under_way == bank.paid_in
    for id in bank.transfers:
        while bank.step(id):
            assert bank.balances + bank.under_way == bank.paid_in
    assert bank.under_way == 0
    assert {each.stage for each in bank.transfers.values()} <= {Stage.COMPLETED, Stage.FAILED}
    assert all(each.balance >= 0 for each in bank.accounts.values())
    assert all(not each.closed or not each.balance for each in bank.accounts.values())


def test_over_random_commands_a_transfer_keeps_to_its_rules():
    commands = st.one_of(
        st.builds(RequestTransfer, names, names, amounts),
        st.just(NoteReceived()),
        st.builds(NoteRejected, st.text(max_size=3)),
        *(
            st.just(next_step("t", Transfer("a", "b", TEN, stage)).note)
            for stage in (Stage.REQUESTED, Stage.PAID)
        ),
    )
    check_aggregate(transfer, commands, lambda state: state.stage is Stage.NONE or state.amount > 0)


def test_an_account_stays_open_while_its_money_may_come_back():
    given(account, *PAID_OUT).when(Close()).then_refused(TransferUnderWay("t"))
    given(account, *PAID_OUT).when(ReturnMoney("t")).then(MoneyReturned("t", TEN))
    given(account, *PAID_OUT).when(SettleTransfer("t")).then(TransferSettled("t"))
    over = given(account, *PAID_OUT, TransferSettled("t"))
    over.when(ReturnMoney("t")).then_refused(NotSent("t"))
    assert over.state.sending == {}


def test_money_of_a_transfer_is_sent_and_returned_once():
    rich = given(account, Opened("Ada"), Deposited(TEN), Deposited(TEN), MoneySent("t", TEN))
    rich.when(SendMoney("t", TEN)).then_refused(AlreadySent("t"))
    given(account, *PAID_OUT, MoneyReturned("t", TEN)).when(ReturnMoney("t")).then_refused(NotSent("t"))


def test_an_account_has_an_owner():
    given(account).when(Open(" ")).then_refused(NoOwner())


def test_a_transfer_that_could_never_be_done_is_refused():
    given(transfer).when(RequestTransfer("ada", "ada", TEN)).then_refused(SameAccount("ada"))
    for name in ("", "a\x00", "a" * 251):
        given(transfer).when(RequestTransfer("ada", name, TEN)).then_refused(NoAccount(name))
    asked = given(transfer, TransferRequested("ada", "bob", TEN))
    asked.when(RequestTransfer("ada", "bob", TEN)).then_refused(AlreadyRequested)
    asked.when(NoteReceived()).then_refused(NotNow("requested"))


def test_a_payee_who_does_not_take_it_sends_it_back_and_nobody_else_can():
    state = given(transfer, TransferRequested("ada", "bob", TEN), TransferPaid()).state
    step = next_step("t", state)
    assert [name for name, _ in step.accounts] == ["bob", "ada"]
    assert step.instead(AccountClosed()) == NoteRejected("AccountClosed")
    assert step.instead(NotNow("completed")) is None
    back = next_step("t", transfer.evolve(state, PayeeRejected("AccountClosed")))
    assert back.accounts == (("ada", ReturnMoney("t")),)
    with pytest.raises(InternalError, match="can't go back to 'ada'"):
        back.instead(NotOpen())


def test_a_transfer_that_is_over_needs_nothing():
    done = given(transfer, TransferRequested("ada", "bob", TEN), TransferPaid(), TransferCompleted())
    assert next_step("t", done.state) is None
    assert next_step("t", transfer.initial) is None
