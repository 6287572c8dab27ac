"""Watches a run: how long orders take to be in the view, and how far behind each service is."""

import threading
import time
from collections import deque
from types import TracebackType
from typing import Self

import psycopg

from penstock.apps.shop.database import Connection
from penstock.apps.shop.service import SERVICES
from penstock.apps.shop.truth import handled_events
from penstock.settings import Settings

_EVERY = 0.1  # seconds between two looks: what is measured is up to that much longer
_COUNTED = 1.0  # seconds between two counts
_SEEN = "SELECT DISTINCT order_id FROM order_view WHERE order_id = ANY(%s)"


class Watch:
    """Looks into the database in a thread of its own.

    `seen` has when each order was placed, in seconds since 1970, and how many it took until the view had it.
    """

    def __init__(self, settings: Settings) -> None:
        self._address = settings.dsn().value
        self.seen: deque[tuple[float, float]] = deque()
        self.behind = dict.fromkeys(SERVICES, 0)  # events
        self._awaited: dict[int, float] = {}
        self._counted = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="watch", daemon=True)

    def expect(self, order: int) -> None:
        """Wait for an order that was placed just now."""
        self._awaited[order] = time.time()

    def forget(self, order: int) -> None:
        """Wait no more for an order that was cancelled."""
        self._awaited.pop(order, None)

    @property
    def waiting(self) -> int:
        """How many orders are not in the view yet."""
        return len(self._awaited)

    @property
    def lately(self) -> float:
        """How many seconds the last order to come into the view took."""
        return self.seen[-1][1] if self.seen else float("inf")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        with psycopg.connect(self._address, autocommit=True) as connection:
            while not self._over.wait(_EVERY):
                self._look(connection)
                if time.monotonic() - self._counted > _COUNTED:
                    self._count(connection)

    def _look(self, connection: Connection) -> None:
        try:
            found = connection.execute(_SEEN, [[*self._awaited.copy()]]).fetchall()
        except psycopg.errors.UndefinedTable:  # the flow makes it
            return
        now = time.time()
        for (order,) in found:
            placed = self._awaited.pop(order, None)
            if placed is not None:
                self.seen.append((placed, now - placed))

    def _count(self, connection: Connection) -> None:
        handled = handled_events(connection)
        self.behind = {name: handled["all"] - handled.get(name, 0) for name in SERVICES}
        self._counted = time.monotonic()
