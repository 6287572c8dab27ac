"""The teller: brings commands to one account, by hand or as a generator, and knows what became of each."""

import random
import time
from collections import deque
from decimal import Decimal

from penstock.apps.bank.account import Account, Deposit, Open, Withdraw, account
from penstock.documents import JsonObject
from penstock.errors import RefusedError
from penstock.lab.run import Run
from penstock.sourcing import Command, CommandHandler, EventStore

STREAM = "ada"
_SHOWN = 36
_AT_ONCE = 10  # commands, between which buttons are looked at


class Teller:
    """Handles commands for the account `ada`; a refusal leaves no event behind."""

    def __init__(self, run: Run, store: EventStore) -> None:
        self._run = run
        self._accounts: CommandHandler[Account] = CommandHandler(store, account)
        self._random = random.Random(7)  # noqa: S311
        self._due = time.monotonic()
        self.version = self.accepted = self.refused = 0
        self.balance = Decimal(0)
        self.shown: deque[JsonObject] = deque(maxlen=_SHOWN)

    def open(self) -> None:
        """Open the account."""
        self.handle(Open("Ada"))

    def handle(self, command: Command) -> None:
        """Handle one command: load, decide, append."""
        try:
            receipt = self._accounts.execute(STREAM, command, actor="lab")
        except RefusedError as refused:
            self.refused += 1
            self._run.flow([{"refused": str(refused.refusal), "command": type(command).__name__}])
            return
        self.accepted += 1
        self.version = receipt.version
        amount = Decimal(getattr(command, "amount", 0))
        self.balance += -amount if isinstance(command, Withdraw) else amount
        kind = receipt.records[-1].type
        event: JsonObject = {
            "version": self.version, "type": kind, "amount": float(amount), "balance": float(self.balance)
        }  # fmt: skip
        self.shown.append(event)
        self._run.flow([event])

    def generate(self, rate: float) -> None:
        """Handle the commands that are due by now at so many a second."""
        now = time.monotonic()
        if not rate:
            self._due = now
            return
        self._due = max(self._due, now - _AT_ONCE / rate)
        for _ in range(_AT_ONCE):
            if self._due > now:
                return
            self._due += 1 / rate
            amount = Decimal(self._random.randrange(1, 60))
            self.handle(Deposit(amount) if self._random.random() < 0.55 else Withdraw(amount))
