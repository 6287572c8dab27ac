"""Transfers on a real store: the process manager is killed anywhere, and no money is lost or made."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import psycopg
import pytest
from tests.bank import Money, ProcessManager, check_conserved, check_over, states, wait_until_over

from penstock.apps.bank.account import Close, Deposit, Open, Withdraw, account
from penstock.apps.bank.expected import Book
from penstock.apps.bank.transfer import RequestTransfer, transfer
from penstock.apps.bank.transfers import Bank, next_step
from penstock.apps.bank.writers import CountingStore, Writers
from penstock.errors import ConfigurationError, RefusedError
from penstock.sourcing import CommandHandler, Directed, EventStore, Process, Reaction, execute_together, tail
from penstock.testing.listener import PointListener

POINTS = ("process.before-command", "process.refused", "process.done", "process.before-position")
NAMES = [f"a{number}" for number in range(6)]


@pytest.fixture
def bank(settings, unique):
    with EventStore(f"s{unique}", settings, size=12) as store:
        store.create()
        yield Bank(store)
        with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {store.name} CASCADE")


@pytest.fixture
def money(bank):
    made = Money(bank, NAMES, seed=random.randrange(10**6))
    made.open()
    return made


def balance(bank, name):
    return bank.accounts.load(name).state.balance


def ask(bank, id, payer, payee, amount):
    bank.transfers.execute(id, RequestTransfer(payer, payee, Decimal(amount)))
    bank.process().run(follow=False)
    return bank.transfers.load(id).state


def test_money_goes_over_or_back(bank, money):
    assert ask(bank, "t1", "a0", "a1", 30).stage == "completed"
    assert (balance(bank, "a0"), balance(bank, "a1")) == (70, 130)
    refused = ask(bank, "t2", "a0", "nobody", 30)
    assert (refused.stage, refused.reason) == ("failed", "NotOpen")
    refused = ask(bank, "t3", "a0", "a1", 71)
    assert (refused.stage, refused.reason) == ("failed", "InsufficientFunds (balance 70.00, asked 71.00)")
    assert ask(bank, "t4", "nobody", "a1", 1).reason == "NotOpen"
    assert (balance(bank, "a0"), balance(bank, "a1")) == (70, 130)
    money.requested = 4
    check_over(bank, money)


def test_every_event_says_what_it_came_of(bank, money):
    bank.transfers.execute("t", RequestTransfer("a0", "a1", Decimal(5)), actor="ada", correlation="visit")
    bank.process().run(follow=False)
    records = [*bank.store.read("transfer", "t"), *bank.store.read("account", "a1", after=2)]
    assert {each.correlation for each in records} == {"visit"}
    assert [each.actor for each in records] == ["ada", *["process transfers"] * 3]


def test_a_payer_can_not_leave_while_the_money_may_come_back(bank, money):
    bank.transfers.execute("t", RequestTransfer("a0", "nobody", Decimal(100)))
    step = next_step("t", bank.transfers.load("t").state)
    moves = [Directed(bank.accounts, *each) for each in step.accounts]
    execute_together([Directed(bank.transfers, "t", step.note), *moves])
    with pytest.raises(RefusedError, match="TransferUnderWay"):
        bank.accounts.execute("a0", Close())
    bank.process().run(follow=False)
    assert bank.transfers.load("t").state.stage == "failed"
    assert balance(bank, "a0") == 100


def test_under_another_name_a_process_does_nothing_again(bank, money):
    """Its commands have other ids then; the transfers themselves say that they have gone on."""
    money.request(10)
    bank.process().run(follow=False)
    before = states(bank)
    renamed = Process("renamed", bank.store, [transfer], bank._react)
    assert renamed.run(follow=False) > 10
    assert states(bank) == before


def test_one_instance_works_at_a_time(bank, monkeypatch):
    monkeypatch.setattr("penstock.sourcing.process._PATIENCE", 0.2)
    stopped = threading.Event()
    first = threading.Thread(target=bank.process().run, args=(stopped,))
    first.start()
    time.sleep(0.5)
    with pytest.raises(ConfigurationError, match="runs already"):
        bank.process().run(follow=False)
    stopped.set()
    first.join()
    assert bank.process().run(follow=False) == 0


def test_a_refusal_stays_one_when_its_event_is_seen_again(bank, money, monkeypatch):
    """The process dies behind a reaction that was refused; meanwhile it would have been accepted."""
    bank.accounts.execute("poor", Open("Poor"))

    def react(record, event):
        take, note = Withdraw(Decimal(5)), Deposit(Decimal(1))
        yield Reaction((Directed(bank.accounts, "poor", take),))
        yield Reaction((Directed(bank.accounts, "a0", note),))

    process = Process("careful", bank.store, [transfer], react)
    bank.transfers.execute("t", RequestTransfer("a1", "a2", Decimal(1)))
    monkeypatch.setattr(process, "_keep", lambda at: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        process.run(follow=False)
    bank.accounts.execute("poor", Deposit(Decimal(50)))
    Process("careful", bank.store, [transfer], react).run(follow=False)
    assert (balance(bank, "poor"), balance(bank, "a0")) == (50, 101)


def test_a_refusal_is_not_asked_again_once_later_events_were_handled(bank, money, monkeypatch):
    """Positions are kept every hundred events, and behind each refusal."""
    bank.accounts.execute("poor", Open("Poor"))

    def react(record, event):
        name = "poor" if record.stream == "t1" else "a0"
        yield Reaction((Directed(bank.accounts, name, Withdraw(Decimal(5))),))

    for id in ("t1", "t2", "t3"):
        bank.transfers.execute(id, RequestTransfer("a1", "a2", Decimal(1)))
    process = Process("careful", bank.store, [transfer], react)
    keep, kept = process._keep, []
    monkeypatch.setattr(process, "_keep", lambda at: kept.append(at) or keep(at))
    process.run(follow=False)
    assert len(kept) == 2
    assert balance(bank, "a0") == 90


def test_of_a_reaction_and_what_is_done_instead_one_is_done(bank, money):
    """The refusal is over when the process, killed before it did the other thing, looks again."""
    bank.accounts.execute("poor", Open("Poor"))
    tries = []

    def react(record, event):
        def otherwise(refusal):
            tries.append(refusal)
            if len(tries) == 1:
                raise KeyboardInterrupt  # killed here
            return (Directed(bank.accounts, "a0", Deposit(Decimal(5))),)

        yield Reaction((Directed(bank.accounts, "poor", Withdraw(Decimal(5))),), otherwise)

    bank.transfers.execute("t", RequestTransfer("a1", "a2", Decimal(1)))
    with pytest.raises(KeyboardInterrupt):
        Process("either", bank.store, [transfer], react).run(follow=False)
    bank.accounts.execute("poor", Deposit(Decimal(5)))
    for _ in range(2):
        Process("either", bank.store, [transfer], react).run(follow=False)
    assert (balance(bank, "poor"), balance(bank, "a0")) == (0, 100)


def test_a_process_that_can_do_neither_stops_and_says_so(bank, money):
    def react(record, event):
        poor = Directed(bank.accounts, "nobody", Withdraw(Decimal(5)))
        yield Reaction((poor,), lambda _: (poor,))

    bank.transfers.execute("t", RequestTransfer("a1", "a2", Decimal(1)))
    with pytest.raises(ConfigurationError, match="can't go on behind event 1 of transfer 't'"):
        Process("stuck", bank.store, [transfer], react).run(follow=False)


def test_commands_of_which_one_led_to_nothing_are_known_when_they_come_again(bank, money):
    idle = CommandHandler(bank.store, replace(account, decide=lambda *_: ()))
    both = [Directed(bank.accounts, "a0", Deposit(Decimal(1))), Directed(idle, "a1", Close())]
    first, again = execute_together(both, id="x"), execute_together(both, id="x")
    assert [each.version for each in first] == [each.version for each in again]
    assert balance(bank, "a0") == 101


def test_writers_know_what_they_paid_in(settings, unique):
    names = [f"a{number}" for number in range(10)]
    with CountingStore(f"s{unique}", settings, size=10) as store:
        store.create()
        with Writers(Bank(store), names, writers=8, rate=400) as writers:
            writers.open_accounts(Decimal(100))
            writers.start()
            time.sleep(1.5)
        Bank(store).process().run(follow=False)
        book = Book.of(record for _, record in tail(store, follow=False))
    assert (book.balances, book.under_way, book.unfinished) == (writers.paid_in, 0, 0)
    assert len(book.transfers) == writers.transfers > 5
    assert {"InsufficientFunds", "MoneyLeft"} <= {*writers.refused}
    assert store.conflicts > 0
    assert len(writers.receipts) == writers.accepted - writers.transfers


def test_a_writer_that_breaks_is_heard_of(settings, unique):
    with CountingStore(f"s{unique}", settings) as store:  # which has no tables
        writers = Writers(Bank(store), ["a"], writers=1, rate=400)
        writers.start()
        time.sleep(0.3)
        with pytest.raises(ConfigurationError, match="make it first"):
            writers.stop()


def test_a_process_goes_on_when_its_connections_are_ended(bank, money, settings):
    """Its lock goes with one of them: it takes it again."""
    stopped = threading.Event()
    runner = threading.Thread(target=bank.process().run, args=(stopped,))
    runner.start()
    try:
        with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
            for _ in range(8):
                money.request(4)
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
                    [f"penstock store {bank.store.name}"],
                )
                time.sleep(0.1)
        wait_until_over(bank, money)
    finally:
        stopped.set()
        runner.join()
    check_over(bank, money)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_of_its_points_it_loses_and_doubles_nothing(bank, money, settings, point):
    _kill_at(bank, money, settings, point, kills=1)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", POINTS)
def test_killed_many_times_at_each_of_its_points(bank, money, settings, point):
    _kill_at(bank, money, settings, point, kills=20)


def _kill_at(bank, money, settings, point, kills):
    """Hold the process manager at a point each time it is started, and kill it there."""
    held, is_rare = threading.Event(), point in ("process.refused", "process.before-position")

    def decide(reached, _):
        if reached == point and not held.is_set() and (is_rare or random.random() < 0.5):
            held.set()
        return reached == point and held.is_set()

    with PointListener(decide) as listener:
        for _ in range(kills):
            held.clear()
            money.request(60 if is_rare else 6)
            with ProcessManager(settings, bank.store.name, listener.environment):
                assert held.wait(30), point
            check_conserved(bank, money)
    with ProcessManager(settings, bank.store.name):
        wait_until_over(bank, money)
    check_over(bank, money)


@pytest.mark.timeout(120)
def test_killed_at_random_moments_it_loses_and_doubles_nothing(bank, money, settings):
    _kill_at_random(bank, money, settings, kills=3)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_killed_often_at_random_moments(bank, money, settings):
    _kill_at_random(bank, money, settings, kills=60)


def _kill_at_random(bank, money, settings, kills):
    """Others take money out, pay in and close accounts all the while."""
    with ProcessManager(settings, bank.store.name) as manager, ThreadPoolExecutor(2) as pool:
        for _ in range(kills):
            both = [pool.submit(money.request, 15), pool.submit(money.disturb, 10)]
            time.sleep(random.uniform(0.4, 1.2))
            manager.restart()
            [each.result() for each in both]
            check_conserved(bank, money)
        wait_until_over(bank, money)
        assert manager.alive
    check_over(bank, money)
