"""The bank's views are what folding the log gives, whatever is killed; new readers come while it works."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

import psutil
import psycopg
import pytest
from tests import quick
from tests.bank import Money

from penstock.apps.bank.account import Deposit, Open, Withdraw
from penstock.apps.bank.child import Child
from penstock.apps.bank.demo import Plan, _Run, run_bank
from penstock.apps.bank.expected import Book
from penstock.apps.bank.messages import messages, text_messages
from penstock.apps.bank.pipeline import STORE, accounts, bank
from penstock.apps.bank.report import Report, compare, read_topics
from penstock.apps.bank.status import STAGES
from penstock.apps.bank.transfers import Bank
from penstock.apps.bank.writers import CountingStore
from penstock.apps.demo.status import RunStatus
from penstock.errors import StaleViewError
from penstock.local import running
from penstock.log import Broker, Consumer, apply
from penstock.pipeline import Runner
from penstock.sourcing import Freshness, publish, tail, topic_of


@pytest.fixture(scope="module")
def store(settings):
    with CountingStore(STORE, settings) as made:
        made.create()
        apply([accounts, topic_of(STORE, "transfer", partitions=2)], Broker(settings))
        publish(made, partitions=2)
        yield made


@contextmanager
def publishing(settings):
    child = Child("publish", STORE, settings)
    child.start()
    try:
        yield child
    finally:
        child.kill()


def book_of(store):
    return Book.of(record for _, record in tail(store, follow=False))


def wait_for(reached, seconds=60):
    until = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.3)


def are_published(store, book):
    report = Report()
    read_topics(report, book, store)
    assert (report.doubled, report.disordered) == (0, 0)
    return report.missing == 0


def table(settings, query):
    with psycopg.connect(settings.dsn().value) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_views_are_what_the_log_gives_and_a_reader_comes_later(store, settings, spark):
    money = Money(Bank(store), [f"a{number}" for number in range(8)], seed=random.randrange(10**6))
    money.open(5_000)
    money.request(12)
    money.disturb(30)
    money.bank.accounts.execute("a0", Deposit(Decimal(9_000)))
    money.bank.accounts.execute("a0", Withdraw(Decimal("1000.00")))
    money.bank.process().run(follow=False)
    book = book_of(store)
    with publishing(settings):
        wait_for(lambda: are_published(store, book))
    with Runner(bank, settings, spark=spark, once=True) as runner:
        assert runner.wait(120)
    report = Report()
    compare(report, book, settings)
    assert report.differing == {"balances": 0, "statements": 0, "movements": 0}
    assert report.rows > 40
    with Runner(messages, settings, spark=spark, once=True) as runner:
        assert runner.wait(60)
    with Consumer(text_messages, settings) as consumer:
        (sent,) = [record.event for record in consumer.records(idle="1 second")]
    assert (sent.account, sent.amount) == ("a0", Decimal("1000.00"))
    assert sent.text == "1000.00 was taken from your account a0"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_reader_waits_for_its_own_write(store, settings, spark):
    bank_ = Bank(store)
    bank_.accounts.execute("reader", Open("Reader"))
    with publishing(settings), Freshness(accounts.name, settings) as freshness:
        with Runner(bank, settings, spark=spark, flows=["balances"]):
            for amount in (10, 20, 30):
                receipt = bank_.accounts.execute("reader", Deposit(Decimal(amount)))
                delay = freshness.wait(receipt, "bank.balances", within="60 seconds")
                assert 0 < delay.to_log <= delay.to_view
                query = "SELECT balance, version FROM bank_balances WHERE account = 'reader'"
                assert table(settings, query) == [(amount * (amount // 10 + 1) // 2, receipt.version)]
        receipt = bank_.accounts.execute("reader", Deposit(Decimal(1)))
        with pytest.raises(StaleViewError, match=r"bank\.balances is at offset"):
            freshness.wait(receipt, "bank.balances", within="2 seconds")
    receipt = bank_.accounts.execute("reader", Deposit(Decimal(1)))
    with (
        Freshness(accounts.name, settings) as freshness,
        pytest.raises(StaleViewError, match="not in the log"),
    ):
        freshness.wait(receipt, "bank.balances", within="1 second")


class _Relentless(_Run):
    """Kills one of the three after another, and all at once in the end."""

    def _kill(self):
        for each in (self.publisher, self.process, self.flows, self.publisher, self.process):
            each.kill()
            time.sleep(random.uniform(0, 1))
            each.start()
            time.sleep(random.uniform(2, 5))
        super()._kill()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_through_kills_of_all_readers_views_are_what_the_log_gives(monkeypatch):
    """On a platform of its own, as the demo has it."""
    monkeypatch.setattr("penstock.apps.bank.demo._Run", _Relentless)
    with running() as settings:
        plan = Plan(rate=40, accounts=50, seconds=6)
        report = run_bank(replace(settings, spark=quick.SPARK), plan, RunStatus(STAGES))
    assert report.complete, report
    assert report.ends["completed"] > 20
    assert report.ends["failed"] > 5
    assert report.delays


@pytest.mark.long
@pytest.mark.timeout(120)
def test_ctrl_c_stops_all_of_the_demo_and_says_so(tmp_path):
    with (tmp_path / "printed").open("wb") as printed:
        command = [sys.executable, "-m", "penstock.cli", "demo", "bank"]
        environment = os.environ | {"TMPDIR": str(tmp_path)}
        demo = subprocess.Popen(
            command, env=environment, stdout=printed, stderr=printed, preexec_fn=heed_ctrl_c
        )
    wait_for(lambda: "start publisher" in (tmp_path / "printed").read_text(), 60)
    began = psutil.Process(demo.pid).children(recursive=True)
    assert len(began) > 3
    demo.send_signal(signal.SIGINT)
    assert demo.wait(30) == 130
    assert "nothing is left running" in (tmp_path / "printed").read_text()
    _, alive = psutil.wait_procs(began, 5)
    assert alive == []


def heed_ctrl_c():
    """What is started in the background by a shell ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
