"""Clerks of a bank in a process of their own, for a campaign to kill: python -m tests.sourcing.clerks SEED"""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from random import Random

from penstock.apps.bank.account import Close, Deposit, Deposited, Open, Opened, Withdraw
from penstock.apps.bank.pipeline import STORE
from penstock.apps.bank.transfer import RequestTransfer
from penstock.apps.bank.transfers import Bank
from penstock.errors import RefusedError, RepeatedCommandError, TryAgainError
from penstock.settings import Settings
from penstock.sourcing import EventStore
from tests.sourcing.journal import ACCEPTED, REFUSED, Journal, Order

CLERKS, ACCOUNTS, POPULAR = 6, 40, 3
CLOSING = "closing"  # the file that ends their work
RATE = 12.0  # orders a second of one clerk
WAGES = 80  # events that come at once, so many that they are copied
_TRIES = 600
_KINDS = {"open": 2, "deposit": 10, "withdraw": 7, "transfer": 8, "close": 1, "wages": 1}


class Clerk:
    """Sends one order after the other, each until it knows what came of it."""

    def __init__(self, bank: Bank, name: str, seed: int) -> None:
        self._bank, self._name = bank, name
        self._journal = Journal(Path(f"{name}.journal"))
        self._chance = Random(f"{seed}/{name}/{len(self._journal.orders)}")

    def work(self, stopped: threading.Event) -> None:
        """Begin with what a kill left open; one who breaks stops all."""
        try:
            if left := self._journal.open:
                self._settle(left)
            while not (stopped.wait(self._chance.expovariate(RATE)) or Path(CLOSING).exists()):
                self._settle(self._journal.begin(self._next()))
        finally:
            stopped.set()

    def _next(self) -> Order:
        (what,) = self._chance.choices([*_KINDS], [*_KINDS.values()])
        id = f"{self._name}/{len(self._journal.orders)}"
        if what == "wages":
            return Order(id, what, f"wages-{self._name}", str(WAGES))
        amount = Decimal(self._chance.randint(1, 20_000)) / 100
        return Order(id, what, self._account(), str(amount), self._chance.choice([self._account(), "nobody"]))

    def _account(self) -> str:
        few = self._chance.random() < 0.3
        return f"a{self._chance.randrange(POPULAR if few else ACCOUNTS)}"

    def _settle(self, order: Order) -> None:
        for _ in range(_TRIES):
            try:
                self._send(order)
                return self._journal.end(order, ACCEPTED)
            except RefusedError:
                return self._journal.end(order, REFUSED)
            except TryAgainError:
                time.sleep(0.2)
        raise TimeoutError(f"nobody takes {order}")

    def _send(self, order: Order) -> None:
        account, amount = order.account, Decimal(order.amount)
        if order.what == "transfer":
            asked = RequestTransfer(account, order.payee, amount)
            self._bank.transfers.execute(order.id, asked, id=order.id, actor=self._name)
        elif order.what == "wages":
            self._pay(order)
        else:
            command = {
                "open": Open(f"Owner of {account}"),
                "deposit": Deposit(amount),
                "withdraw": Withdraw(amount),
                "close": Close(),
            }[order.what]
            self._bank.accounts.execute(account, command, id=order.id, actor=self._name)

    def _pay(self, order: Order) -> None:
        """Many events in one append, with the version that was seen."""
        version = self._bank.store.version("account", order.account)
        opened = () if version else (Opened("Everybody"),)
        events = (*opened, *(Deposited(Decimal(1)) for _ in range(WAGES)))
        append = self._bank.accounts.appending(order.account, version, events)
        with suppress(RepeatedCommandError):  # it was done before
            self._bank.store.append(append, command=order.id)


def main() -> None:
    """Work until the bank closes; what is under way is brought to its end."""
    stopped = threading.Event()
    with EventStore(STORE, Settings.load(), size=CLERKS) as store, ThreadPoolExecutor(CLERKS) as pool:
        clerks = [Clerk(Bank(store), f"clerk-{number}", int(sys.argv[1])) for number in range(CLERKS)]
        for each in [pool.submit(clerk.work, stopped) for clerk in clerks]:
            each.result()


if __name__ == "__main__":
    main()
