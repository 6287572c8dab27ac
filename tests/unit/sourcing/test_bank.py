"""The bank's rules, by example and over random histories."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import strategies as st

from penstock.apps.bank.account import (
    AccountClosed,
    AlreadyOpen,
    AmountNotPositive,
    Close,
    Closed,
    Deposit,
    Deposited,
    InsufficientFunds,
    MoneyLeft,
    NotOpen,
    Open,
    Opened,
    ReceiveMoney,
    SendMoney,
    Withdraw,
    Withdrawn,
    account,
)
from penstock.errors import ConfigurationError
from penstock.sourcing import Aggregate
from penstock.testing import check_aggregate, given

TEN, FIVE = Decimal("10.00"), Decimal("5.00")


def test_an_account_is_opened_once():
    given(account).when(Open("Ada")).then(Opened("Ada"))
    given(account, Opened("Ada")).when(Open("Bob")).then_refused(AlreadyOpen("Ada"))


def test_money_that_is_there_can_be_taken():
    rich = given(account, Opened("Ada"), Deposited(TEN))
    rich.when(Withdraw(FIVE)).then(Withdrawn(FIVE))
    rich.when(Withdraw(TEN + 1)).then_refused(InsufficientFunds(TEN, TEN + 1))
    rich.when(Withdraw(Decimal(0))).then_refused(AmountNotPositive)
    rich.when(Close()).then_refused(MoneyLeft(TEN))


def test_a_closed_account_takes_no_commands():
    given(account, Opened("Ada")).when(Close()).then(Closed())
    given(account, Opened("Ada"), Closed()).when(Deposit(TEN)).then_refused(AccountClosed)
    given(account).when(Deposit(TEN)).then_refused(NotOpen)


def test_a_wrong_expectation_fails():
    with pytest.raises(AssertionError, match="led to"):
        given(account, Opened("Ada")).when(Deposit(TEN)).then(Deposited(FIVE))
    with pytest.raises(AssertionError, match="expected the refusal"):
        given(account, Opened("Ada")).when(Deposit(TEN)).then_refused(NotOpen)


def test_over_random_histories_an_account_is_never_overdrawn():
    amounts = st.decimals(-5, 100, places=2)
    commands = st.one_of(
        st.builds(Open, st.text(min_size=1, max_size=5)),
        st.builds(Deposit, amounts),
        st.builds(Withdraw, amounts),
        st.builds(SendMoney, st.just("t"), amounts),
        st.builds(ReceiveMoney, st.just("t"), amounts),
        st.just(Close()),
    )
    check_aggregate(account, commands, lambda state: state.balance >= 0)


def test_the_property_form_finds_a_rule_that_is_broken():
    careless = Aggregate(
        "account",
        initial=account.initial,
        decide=lambda state, command: Withdrawn(command.amount),
        evolve=account.evolve,
        events=account.events,
    )
    with pytest.raises(AssertionError, match="the invariant does not hold"):
        check_aggregate(careless, st.builds(Withdraw, st.just(TEN)), lambda state: state.balance >= 0)


def test_the_property_form_finds_a_decision_that_is_not_pure():
    amounts = iter(range(1, 10_000))
    whimsical = Aggregate(
        "account",
        initial=account.initial,
        decide=lambda state, command: Deposited(Decimal(next(amounts))),
        evolve=account.evolve,
        events=account.events,
    )
    with pytest.raises(AssertionError, match="not pure"):
        given(whimsical).when(Deposit(TEN))


def test_a_forgotten_case_is_an_error_and_not_nothing():
    with pytest.raises(ConfigurationError, match="decide of 'account' returned None for Deposit"):
        given(replace(account, decide=lambda state, command: None)).when(Deposit(TEN))
    with pytest.raises(ConfigurationError, match="evolve of 'account' returned None for a Opened"):
        given(replace(account, evolve=lambda state, event: None), Opened("Ada")).when(Deposit(TEN))
    for stranger in ("Deposit", Deposit, Opened("Ada")):
        with pytest.raises(ConfigurationError, match="is not a command"):
            given(account).when(stranger)


def test_a_decision_that_is_no_event_is_refused():
    odd = Aggregate(
        "account",
        initial=account.initial,
        decide=lambda state, command: ["paid"],
        evolve=account.evolve,
        events=account.events,
    )
    with pytest.raises(ConfigurationError, match="returned a str"):
        given(odd).when(Deposit(TEN))
