"""A bank for tests: accounts with money, random transfers, and a check that none of it was lost."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from penstock.apps.bank.account import Close, Deposit, Open, Withdraw
from penstock.apps.bank.transfer import RequestTransfer, Stage
from penstock.errors import RefusedError, StoreError
from penstock.sourcing import tail

PROGRAM = Path(__file__).parent / "integration" / "bank_process.py"
OVER = {Stage.COMPLETED, Stage.FAILED}


class Money:
    """Random commands to accounts; `paid_in` is what came into the bank, less what left it."""

    def __init__(self, bank, names, seed):
        self.bank, self.names, self.chance = bank, list(names), random.Random(seed)
        self.paid_in, self.requested, self.refused = Decimal(0), 0, Counter()

    def open(self, amount=100):
        for name in self.names:
            self.bank.accounts.execute(name, Open(name.title()))
            self.bank.accounts.execute(name, Deposit(Decimal(amount)))
            self.paid_in += amount

    def request(self, count):
        """Ask for transfers: some of too much, some to nobody."""
        for _ in range(count):
            payer, payee = self.chance.sample([*self.names, "nobody"], 2)
            amount = Decimal(self.chance.randint(1, 120))
            self.requested += 1
            _until_done(self.bank.transfers, f"t{self.requested}", RequestTransfer(payer, payee, amount))

    def disturb(self, count):
        """Take money out, or close an account while transfers are under way."""
        for _ in range(count):
            name, amount = self.chance.choice(self.names), Decimal(self.chance.randint(1, 30))
            command = self.chance.choice([Deposit(amount), Withdraw(amount), Withdraw(amount), Close()])
            try:
                self.bank.accounts.execute(name, command)
            except RefusedError as refused:
                self.refused[type(refused.refusal).__name__] += 1
                continue
            self.paid_in += {Deposit: amount, Withdraw: -amount, Close: 0}[type(command)]


def _until_done(handler, stream, command):
    """Try again where the connection was lost; with an id, nothing happens twice."""
    for _ in range(20):
        with suppress(StoreError):
            return handler.execute(stream, command, id=f"ask {stream}")
    raise AssertionError(f"{stream} could not be asked for")


class ProcessManager:
    """The process manager as a child: started, killed with -9, started again."""

    def __init__(self, settings, store, environment=None):
        self._command = [sys.executable, str(PROGRAM), store]
        self._environment = os.environ | settings.environment() | dict(environment or {})
        self._child = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        self._child = subprocess.Popen(self._command, env=self._environment)

    def kill(self):
        self._child.kill()
        self._child.wait()

    def restart(self):
        self.kill()
        self.start()

    @property
    def alive(self):
        return self._child.poll() is None


def states(bank):
    """All accounts and transfers, by an independent fold of the store's log."""
    for _ in range(20):
        with suppress(StoreError):
            return _states(bank)
    raise AssertionError("the log could not be read")


def _states(bank):
    found = {"account": {}, "transfer": {}}
    handlers = {"account": bank.accounts, "transfer": bank.transfers}
    for _, record in tail(bank.store, follow=False):
        aggregate, streams = handlers[record.category].aggregate, found[record.category]
        state = streams.get(record.stream, aggregate.initial)
        streams[record.stream] = aggregate.fold(aggregate.types.events_of(record), state)
    return found["account"], found["transfer"]


def check_conserved(bank, money):
    """No money is lost or made, at any moment: what is not on accounts is in transfers that are under way."""
    accounts, transfers = states(bank)
    under_way = {id: each.amount for id, each in transfers.items() if each.stage in ("paid", "returning")}
    sending = {id: amount for each in accounts.values() for id, amount in each.sending.items()}
    assert sending == under_way
    assert sum(each.balance for each in accounts.values()) + sum(under_way.values()) == money.paid_in
    assert all(each.balance >= 0 for each in accounts.values())


def check_over(bank, money):
    """Every transfer has ended, and moved its money once or not at all."""
    check_conserved(bank, money)
    _, transfers = states(bank)
    assert len(transfers) == money.requested
    assert {each.stage for each in transfers.values()} <= OVER
    moves = Counter(
        (record.type, event.transfer)
        for _, record in tail(bank.store, category="account", follow=False)
        for event in bank.accounts.aggregate.types.events_of(record)
        if hasattr(event, "transfer")
    )
    assert set(moves.values()) <= {1}
    for id, each in transfers.items():
        kinds = {kind for kind, moved in moves if moved == id}
        done, failed = (
            {"MoneySent", "MoneyReceived", "TransferSettled"},
            ({"MoneySent", "MoneyReturned"}, set()),
        )
        assert kinds == done if each.stage is Stage.COMPLETED else kinds in failed, (id, each, kinds)


def wait_until_over(bank, money, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        _, transfers = states(bank)
        if len(transfers) == money.requested and all(each.stage in OVER for each in transfers.values()):
            return
        time.sleep(0.2)
    raise AssertionError(Counter(each.stage for each in states(bank)[1].values()))
