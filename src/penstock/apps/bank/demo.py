"""A bank at work: writers, transfers, views; a kill -9 on the way; and all of it checked against the log."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal

import psycopg

from penstock.apps.bank.account import Deposit
from penstock.apps.bank.child import Child
from penstock.apps.bank.delays import Delays
from penstock.apps.bank.expected import Book
from penstock.apps.bank.pipeline import STORE, accounts
from penstock.apps.bank.report import Report, compare, read_topics
from penstock.apps.bank.transfers import Bank
from penstock.apps.bank.writers import CountingStore, Writers
from penstock.apps.demo.report import Figures
from penstock.apps.demo.status import RunStatus
from penstock.errors import InternalError
from penstock.local import running
from penstock.log import Broker, apply
from penstock.settings import Settings
from penstock.sourcing import Freshness, publish, tail
from penstock.testing import Driver

MODULE = "penstock.apps.bank.pipeline"
# For processes that live a minute: compiling for years takes the two cores that they need.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.sql.shuffle.partitions": "2",
}
_FIRST = Decimal(1_000)  # what each account begins with


@dataclass(frozen=True)
class Plan:
    """How much is done, and for how long."""

    writers: int = 16
    rate: int = 40  # commands a second
    accounts: int = 200
    seconds: float = 12.0  # before the kill
    after: float = 5.0  # behind the recovery
    patience: float = 120.0  # seconds that anything is waited for


def run_alone(plan: Plan, status: RunStatus) -> Report:
    """Run the bank on services of its own, which are gone at the end."""
    with running() as settings:
        report = run_bank(settings, plan, status)
        status.enter("stop")
    return report


def run_bank(settings: Settings, plan: Plan, status: RunStatus) -> Report:
    """Run the bank for a bounded time, and report what came of it."""
    names = [f"account-{number:03}" for number in range(plan.accounts)]
    with CountingStore(STORE, settings, size=plan.writers + 2) as store:
        store.create()
        apply([accounts], Broker(settings))
        publish(store, partitions=accounts.partitions)
        bank = Bank(store)
        with (
            Writers(bank, names, writers=plan.writers, rate=plan.rate) as writers,
            Delays(writers.receipts, settings) as delays,
        ):
            return _Run(settings, plan, status, bank, store, writers, delays).run()


@dataclass
class _Run:
    settings: Settings
    plan: Plan
    status: RunStatus
    bank: Bank
    store: CountingStore
    writers: Writers
    delays: Delays
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        quick = replace(self.settings, spark={**QUICK, **self.settings.spark})
        self.flows = Driver("bank", MODULE, quick)
        self.publisher = Child("publish", STORE, self.settings)
        self.process = Child("transfers", STORE, self.settings)
        self.status.figures = self._figures

    def run(self) -> Report:
        """Go through all stages; nothing runs when it returns."""
        try:
            self._start()
            self._work()
            self._kill()
            self._settle()
            self._check()
        finally:
            for each in (self.flows, self.publisher, self.process):
                each.kill()
        return self.report

    def _start(self) -> None:
        self.status.enter("open", f"{self.plan.accounts} of them, with {_FIRST:,} each")
        self._start_all()
        self.writers.open_accounts(_FIRST)
        self.status.enter("readers", "Spark takes the longest")
        self.writers.start()
        self._await(lambda: bool(self.delays.seen), "the first row of a view")

    def _start_all(self) -> None:
        for each in (self.flows, self.publisher, self.process):
            each.start()

    def _work(self) -> None:
        self.status.enter("work", f"{self.plan.writers} writers, {self.plan.rate} commands a second")
        self._await(lambda: self.delays.waiting < self.plan.rate * 5, "a view that keeps up")
        since, until = time.monotonic(), time.monotonic() + self.plan.seconds
        self.report.own_write = self._own_write()
        self._await(lambda: time.monotonic() > until, "the end of the steady time")
        self._await(lambda: self.delays.oldest > until, "its commands in the view")
        self.report.delays = [took for begun, took in list(self.delays.seen) if since < begun < until]

    def _own_write(self) -> float:
        """Write, wait until the view has it, and read it there; returns how long that took."""
        begun, amount = time.monotonic(), Decimal("0.01")
        with Freshness(accounts.name, self.settings, namespace=self.settings.namespace) as freshness:
            name = "account-000"
            receipt = self.bank.accounts.execute(name, Deposit(amount), actor="the demo")
            self.writers.paid_in += amount
            freshness.wait(receipt, "bank.balances", within="30 seconds")
        with psycopg.connect(self.settings.dsn().value) as connection:
            asked = "SELECT version FROM bank_balances WHERE account = %s"
            (version,) = connection.execute(asked, [name]).fetchone() or (0,)
        if version < receipt.version:
            raise InternalError(f"the view has version {version} of {name}, after {receipt.version} was seen")
        return time.monotonic() - begun

    def _kill(self) -> None:
        """The writers go on all the while: they need none of the three."""
        self.status.enter("kill", "publisher, process manager, driver, JVM and workers are gone")
        killed = time.monotonic()
        for each in (self.flows, self.publisher, self.process):
            each.kill()
        self._start_all()
        self._await(lambda: any(begun > killed for begun, _ in list(self.delays.seen)), "a view that follows")
        self.report.recovered = time.monotonic() - killed
        self.status.note = f"back after {self.report.recovered:.0f} s; the writers never waited"
        until = time.monotonic() + self.plan.after
        self._await(lambda: time.monotonic() > until, "the end")

    def _settle(self) -> None:
        self.status.enter("settle", "no more commands")
        self.writers.stop()
        self._await(lambda: self._book().unfinished == 0, "the end of all transfers")
        self._await(lambda: self.delays.oldest > time.monotonic(), "all commands in the view")
        book = self._book()
        with suppress(InternalError):  # what differs is reported
            self._await(lambda: self._is_same(book), "views that show all", patience=30)

    def _check(self) -> None:
        self.status.enter("check", "every event is folded again, plainly")
        book, report = self._book(), self.report
        compare(report, book, self.settings)
        self.status.note = "the topics are read from their beginning"
        read_topics(report, book, self.store)
        report.events, report.accepted = len(book.ids), self.writers.accepted
        report.conflicts, report.refused = self.store.conflicts, self.writers.refused
        report.ends.update(each.stage.value for each in book.transfers.values())
        report.longest = max((took for _, took in self.delays.seen), default=0.0)
        report.paid_in, report.balances = self.writers.paid_in, book.balances
        report.under_way = book.under_way

    def _book(self) -> Book:
        return Book.of(record for _, record in tail(self.store, follow=False))

    def _is_same(self, book: Book) -> bool:
        compare(self.report, book, self.settings)
        return not any(self.report.differing.values())

    def _await(self, reached: Callable[[], bool], what: str, patience: float | None = None) -> None:
        """Wait for something, but not for ever, and not for the dead."""
        deadline = time.monotonic() + (patience or self.plan.patience)
        while not reached():
            for name, each in (
                ("flows", self.flows),
                ("publisher", self.publisher),
                ("process", self.process),
            ):
                if not each.alive:
                    raise InternalError(f"the {name} ended before {what}: {each.last_words()}")
            if time.monotonic() > deadline:
                raise InternalError(f"{what} did not come in time")
            time.sleep(0.2)

    def _figures(self) -> Figures:
        recent = [took for _, took in list(self.delays.seen)[-200:]]
        waits = f"{sum(recent) / len(recent):.1f} s" if recent else "–"
        refused = self.writers.refused.total()
        return [
            ("accepted", f"{self.writers.accepted:,}", f"{self.writers.transfers:,} of them transfers"),
            ("refused", f"{refused:,}", f"{self.store.conflicts:,} conflicts were retried"),
            ("in the view", f"{len(self.delays.seen):,}", f"{self.delays.waiting:,} wait; lately {waits}"),
        ]
