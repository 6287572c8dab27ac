"""What `penstock capture run` shows: a bar for each table of the snapshot, then a line now and then."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

if TYPE_CHECKING:
    from penstock.capture.position import Position

_EVERY = 10.0  # seconds


class CaptureScreen:
    """Shows positions as they are written; without a terminal, lines take the place of bars."""

    def __init__(self, console: Console) -> None:
        rows = TextColumn("{task.completed:,.0f} rows")
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            rows,
            console=console,
        )
        self._console = console
        self._tasks: dict[str, TaskID] = {}
        self._logged_at, self._is_following = time.monotonic(), False
        self._reads, self._last = False, ""  # whether rows were read, and the last line

    def __enter__(self) -> "CaptureScreen":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def log(self, line: str) -> None:
        """Show a line."""
        self._console.print(line, markup=False, highlight=False)

    def report(self, position: "Position") -> None:
        """Show how far a capture is."""
        if self._console.is_terminal:
            self._draw(position)
        self._reads = self._reads or bool(position.pending)
        if not position.pending and not self._is_following:
            self._is_following, self._logged_at = True, time.monotonic()
            self.log(_beginning(position, self._reads))
        elif time.monotonic() - self._logged_at > _EVERY and (line := _summary(position)) != self._last:
            self._logged_at, self._last = time.monotonic(), line
            self.log(line)

    def _draw(self, position: "Position") -> None:
        for path, each in position.tables.items():
            if path not in self._tasks and not each.done:
                self._tasks[path] = self._bars.add_task(path, total=max(each.about, 1))
            if path in self._tasks:
                total = each.rows if each.done else max(each.about, each.rows, 1)
                self._bars.update(self._tasks[path], completed=each.rows, total=max(total, 1))


def _beginning(position: "Position", reads: bool) -> str:
    if not reads:
        return "going on where it was: every change"
    rows = sum(each.rows for each in position.tables.values())
    tables = "1 table" if len(position.tables) == 1 else f"{len(position.tables)} tables"
    return f"snapshot: {rows:,} rows of {tables}; now every change"


def _summary(position: "Position") -> str:
    pending = position.pending
    if pending:
        each = position.tables[pending[0]]
        return f"snapshot of {pending[0]}: {each.rows:,} of about {max(each.about, each.rows):,} rows"
    if not position.changes:
        return "no changes yet"
    at = datetime.fromtimestamp(position.seen / 1e6, UTC).isoformat(timespec="seconds")
    return f"{position.changes:,} changes; the last transaction was committed at {at}"
