"""What `penstock replica run` shows: a line now and then."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from penstock.replica.session import Applied

_EVERY = 10.0  # seconds


class ReplicaScreen:
    """Shows what was applied, at first and every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console, self._next = console, 0.0

    def log(self, line: str) -> None:
        """Show a line."""
        self._console.print(line, markup=False, highlight=False)

    def report(self, applied: "Applied") -> None:
        """Show how much was applied, if the last line is a while ago."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY
        at = datetime.fromtimestamp(applied.seen / 1e6, UTC).isoformat(timespec="seconds")
        self.log(f"{applied.records:,} records applied; the last change was committed at {at}")
