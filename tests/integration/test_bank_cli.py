"""penstock bank: what happened, or why it was refused, and an exit code that says which."""

import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import psycopg
import pytest
from typer.testing import CliRunner

from penstock.apps.bank.account import Deposit, Open, Withdraw
from penstock.apps.bank.transfers import Bank
from penstock.cli.main import app
from penstock.errors import ConfigurationError
from penstock.sourcing import EventStore


@pytest.fixture
def store(settings, unique, monkeypatch):
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    with EventStore(f"s{unique}", settings) as made:
        made.create()
        yield made
        with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {made.name} CASCADE")


@pytest.fixture
def bank(store):
    def run(*words, code=0):
        done = CliRunner().invoke(app, ["bank", *words, "--store", store.name], env={"COLUMNS": "160"})
        assert done.exit_code == code, (done.output, done.exception)
        return done.output.strip()

    return run


@contextmanager
def carrying_out(store):
    stopped = threading.Event()
    worker = threading.Thread(target=Bank(store).process().run, args=(stopped,))
    worker.start()
    try:
        yield
    finally:
        stopped.set()
        worker.join()


def test_money_comes_in_and_goes_out(bank):
    assert bank("open", "ada", "Ada") == "opened ada for Ada"
    assert bank("deposit", "ada", "50", "--id", "d1") == "paid 50 into ada; there is 50.00 now"
    assert bank("deposit", "ada", "50", "--id", "d1") == "it was done before: paid 50 into ada"
    assert (
        bank("withdraw", "ada", "20.50", "--actor", "teller") == "took 20.50 out of ada; there is 29.50 now"
    )
    assert bank("balance", "ada") == "29.50"
    shown = json.loads(bank("history", "ada", "--json"))
    assert [(each["version"], each["actor"]) for each in shown] == [(1, None), (2, None), (3, "teller")]
    assert "teller" in bank("history", "ada")
    assert json.loads(bank("accounts", "--json"))[0]["balance"] == "29.50"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("withdraw", "ada", "20"), "there is 5.00, and 20.00 was asked for"),
        (("withdraw", "nobody", "20"), "there is no such account"),
        (("deposit", "ada", "0"), "0.00 is not an amount above zero"),
        (("open", "ada", "Eve"), "opened before, for Ada"),
        (("close", "ada"), "5.00 is left in the account"),
        (("transfer", "ada", "ada", "1"), "ada can't pay itself"),
    ],
)
def test_a_refusal_says_why_and_ends_with_2(bank, words, why):
    bank("open", "ada", "Ada")
    bank("deposit", "ada", "5")
    assert why in bank(*words, code=2)


def test_transfers_arrive_come_back_or_wait(bank, store):
    for name in ("ada", "bob"):
        bank("open", name, name.title())
    bank("deposit", "ada", "100")
    asked = bank("transfer", "ada", "bob", "10", "--id", "t1", "--wait", "0", code=75)
    assert asked == "requested: 10.00 from ada to bob (t1); does `penstock bank process` run?"
    assert "stopped" in bank("process", "--once")
    assert bank("transfer", "ada", "bob", "10", "--id", "t1") == "transferred 10.00 from ada to bob (t1)"
    with carrying_out(store):
        assert bank("transfer", "ada", "bob", "30", "--id", "t2").startswith("transferred 30.00")
        assert "refused: 5.00 from ada to zoe: NotOpen" in bank("transfer", "ada", "zoe", "5", code=2)
    assert (bank("balance", "ada"), bank("balance", "bob")) == ("60.00", "40.00")
    done = CliRunner().invoke(
        app, ["bank", "transfer", "ada", "bob", "9", "--id", "t1", "--store", store.name]
    )
    assert isinstance(done.exception, ConfigurationError)
    assert "10.00 from ada to bob" in str(done.exception)


def test_the_past_is_shown_by_time_and_month(bank, store):
    months = [datetime(2026, 1, 10, tzinfo=UTC), datetime(2026, 2, 10, tzinfo=UTC)]
    clock = iter([months[0], months[0], months[1]])
    with EventStore(store.name, store.settings, clock=lambda: next(clock)) as dated:
        handler = Bank(dated).accounts
        handler.execute("ada", Open("Ada"))
        handler.execute("ada", Deposit(Decimal(100)))
        handler.execute("ada", Withdraw(Decimal(30)))
    assert bank("balance", "ada", "--at", (months[1] - timedelta(days=1)).isoformat()) == "100.00"
    assert bank("balance", "ada", "--at", "2026-02-10T00:00:00") == "70.00"
    assert bank("balance", "ada", "--at", "2025-01-01", code=66) == "there was no account ada"
    shown = bank("statement", "ada", "--month", "2026-02")
    assert "before" in shown
    assert shown.splitlines()[-1] == "in 0.00, out 30.00"
    (found,) = json.loads(bank("statement", "ada", "--month", "2026-01", "--json"))
    assert (found["before"], len(found["lines"])) == ("0.00", 1)
    assert bank("history", "bob", code=66) == "there is no account bob"


def test_what_is_no_amount_time_or_month_is_refused(store):
    for words in (
        ("deposit", "ada", "much"),
        ("balance", "ada", "--at", "noon"),
        ("statement", "ada", "--month", "May"),
    ):
        done = CliRunner().invoke(app, ["bank", *words, "--store", store.name])
        assert isinstance(done.exception, ConfigurationError), words
        assert "write it as" in str(done.exception)


def test_closed_accounts_are_shown_as_such(bank):
    bank("open", "ada", "Ada")
    assert bank("close", "ada") == "closed ada"
    assert bank("balance", "ada") == "0.00, closed"
    assert "the account is closed" in bank("deposit", "ada", "1", code=2)


def test_streams_are_listed_in_pages(store, monkeypatch):
    for number in range(5):
        Bank(store).accounts.execute(f"a{number}", Open("x"))
    monkeypatch.setattr("penstock.sourcing.store._PAGE", 2)
    assert [*store.streams("account")] == [f"a{number}" for number in range(5)]
