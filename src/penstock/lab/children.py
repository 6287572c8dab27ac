"""The child processes of a run: they end together and first, and no network is needed for that."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from penstock.lab.run_over import RunOver

_log = logging.getLogger("penstock")
_PATIENCE = 10.0  # seconds that all of them have to end by themselves


class Child(Protocol):
    """One process, or some that belong together; they may be started again."""

    @property
    def pid(self) -> int | None:
        """The process to be found again by; None if there is none, or it is found in another way."""

    @property
    def alive(self) -> bool: ...

    def ask_to_end(self) -> None:
        """Let it end by itself, without waiting; what needs no order is killed."""

    def kill(self) -> None:
        """End it with -9."""


class Children:
    """Those of one run; what comes after the end is ended at once."""

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._is_over = False
        self._lock = threading.Lock()

    def add(self, child: Child) -> None:
        """End it with the others; raises RunOver if they have ended already."""
        with self._lock:
            if child not in self._children:
                self._children.append(child)
            is_over = self._is_over
        if is_over:
            child.kill()
            raise RunOver

    def end(self) -> None:
        """Ask all to end, and kill those that have not ended after some seconds."""
        with self._lock:
            self._is_over, children = True, self._children[::-1]
        for each in children:
            _safely(each.ask_to_end)
        deadline = time.monotonic() + _PATIENCE
        while any(each.alive for each in children) and time.monotonic() < deadline:
            time.sleep(0.05)
        for each in children:
            if each.alive:
                _safely(each.kill)


def _safely(end: Callable[[], None]) -> None:
    """One that can't be ended must not save the others."""
    try:
        end()
    except Exception:
        _log.exception("a process of an experiment can't be ended")
