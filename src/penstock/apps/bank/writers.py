"""Writers at the counters: commands to random accounts, some of which must be refused."""

import random
import threading
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import TracebackType
from typing import Any, Self

from penstock.apps.bank.account import Close, Deposit, Open, Withdraw
from penstock.apps.bank.transfer import RequestTransfer
from penstock.apps.bank.transfers import Bank
from penstock.errors import ConflictError, RefusedError
from penstock.events import new_id
from penstock.sourcing import Append, Command, CommandHandler, EventStore, Receipt, Recorded

POPULAR = 3  # accounts to which a third of the commands go, so that writers meet


class CountingStore(EventStore):
    """Counts the conflicts that its writers met, and retried."""

    conflicts = 0

    def append(self, *appends: Append, **more: Any) -> list[Recorded]:
        try:
            return super().append(*appends, **more)
        except ConflictError:
            self.conflicts += 1
            raise


class Writers:
    """So many threads that work at a rate until they are stopped.

    `paid_in` is what came into the bank less what left it, by the commands that were accepted. `receipts` has
    those of accounts, with when each command was accepted.
    """

    def __init__(self, bank: Bank, names: list[str], *, writers: int, rate: float, seed: int = 1) -> None:
        self._bank, self._names, self._writers, self._rate = bank, names, writers, rate
        self.accepted = self.transfers = 0
        self.refused: Counter[str] = Counter()
        self.paid_in = Decimal(0)
        self.receipts: deque[tuple[float, Receipt]] = deque()
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._chances = [random.Random(f"{seed}/{number}") for number in range(writers)]  # noqa: S311
        self._pool = ThreadPoolExecutor(writers, thread_name_prefix="writer")
        self._errors: list[BaseException] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def open_accounts(self, amount: Decimal) -> None:
        """Open all accounts, with money in them."""
        list(self._pool.map(lambda name: self._open(name, amount), self._names))

    def start(self) -> None:
        """Begin to work."""
        for chance in self._chances:
            self._pool.submit(self._work, chance)

    def stop(self) -> None:
        """End the work, and raise what went wrong in it."""
        self._stopped.set()
        self._pool.shutdown()
        if self._errors:
            raise self._errors[0]

    def _open(self, name: str, amount: Decimal) -> None:
        self._execute(self._bank.accounts, name, Open(f"Owner of {name}"))
        self._execute(self._bank.accounts, name, Deposit(amount))

    def _work(self, chance: random.Random) -> None:
        try:
            while not self._stopped.wait(chance.expovariate(self._rate / self._writers)):
                self._once(chance)
        except BaseException as error:
            self._errors.append(error)

    def _once(self, chance: random.Random) -> None:
        name, amount = self._name(chance), Decimal(chance.randint(1, 90_000)) / 100
        if chance.random() < 0.3:
            payee = chance.choice([*self._names, "nobody"])
            self._execute(self._bank.transfers, new_id(), RequestTransfer(name, payee, amount))
            return
        commands: list[Command] = [Deposit(amount), Withdraw(amount), Withdraw(2 * amount), Close()]
        (command,) = chance.choices(commands, [10, 7, 1, 1])
        self._execute(self._bank.accounts, name, command)

    def _name(self, chance: random.Random) -> str:
        return chance.choice(self._names[:POPULAR] if chance.random() < 0.33 else self._names)

    def _execute(self, handler: CommandHandler[Any], stream: str, command: Command) -> None:
        begun = time.monotonic()
        try:
            receipt = handler.execute(stream, command, actor=threading.current_thread().name)
        except RefusedError as refused:
            with self._lock:
                self.refused[type(refused.refusal).__name__] += 1
            return
        with self._lock:
            self._count(command, receipt, begun)

    def _count(self, command: Command, receipt: Receipt, begun: float) -> None:
        self.accepted += 1
        match command:
            case Deposit(amount):
                self.paid_in += amount
            case Withdraw(amount):
                self.paid_in -= amount
            case RequestTransfer():
                self.transfers += 1
                return
        self.receipts.append((begun, receipt))
