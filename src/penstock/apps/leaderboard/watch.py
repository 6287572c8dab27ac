"""Watches the best players as a page would that shows them, and notes how old each news is."""

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg.errors import UndefinedTable

_TOP = "SELECT place, player, points, at FROM leaderboard_top"
_LOOK = 0.1  # seconds between two looks


class Watch:
    """Looks at the table in a thread of its own; `news` are moments with the seconds since the game."""

    def __init__(self, dsn: str) -> None:
        self.news: list[tuple[float, float]] = []
        self.best: tuple[int, int] | None = None  # the first player and the points
        self._dsn, self._known = dsn, set[tuple[Any, ...]]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="leaderboard", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._over.wait(_LOOK):
                with suppress(UndefinedTable):  # the flow has not made it yet
                    self._look(connection.execute(_TOP).fetchall())

    def _look(self, rows: list[tuple[Any, ...]]) -> None:
        """A player whose points are new has played just now; one who was overtaken has not."""
        now = time.time()
        scores = {(player, points) for _, player, points, _ in rows}
        fresh = [at for _, player, points, at in rows if (player, points) not in self._known]
        self.news += [(now, now - at.timestamp()) for at in fresh]
        self.best = next(((player, points) for place, player, points, _ in rows if place == 1), None)
        self._known = scores
