"""How long a command takes to be in the view: looked up in the view itself, for every command."""

import threading
import time
from collections import deque
from types import TracebackType
from typing import Self

import psycopg

from penstock.settings import Settings
from penstock.sourcing import Receipt

_EVERY = 0.1  # seconds between two looks: what is measured is up to that much longer
_LOOK = "SELECT account, version FROM bank_balances"


class Delays:
    """Takes receipts from a queue, and notes when the view shows them; `seen` has (when, seconds)."""

    def __init__(self, receipts: "deque[tuple[float, Receipt]]", settings: Settings) -> None:
        self._receipts, self._address = receipts, settings.dsn().value
        self.seen: deque[tuple[float, float]] = deque()
        self._waiting: list[tuple[float, Receipt]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="delays", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def waiting(self) -> int:
        """How many commands are not in the view yet."""
        return len(self._waiting) + len(self._receipts)

    def _follow(self) -> None:
        with psycopg.connect(self._address, autocommit=True) as connection:
            while not self._over.wait(_EVERY):
                self._look(connection)

    def _look(self, connection: "psycopg.Connection[tuple[str, int]]") -> None:
        while self._receipts:
            self._waiting.append(self._receipts.popleft())
        try:
            versions = dict(connection.execute(_LOOK).fetchall())
        except psycopg.errors.UndefinedTable:  # the flow makes it
            return
        now, left = time.monotonic(), []
        for begun, receipt in self._waiting:
            if versions.get(receipt.stream, 0) >= receipt.version:
                self.seen.append((begun, now - begun))
            else:
                left.append((begun, receipt))
        self._waiting = left
