"""A run of the bank while it runs: redrawn in place, or a line at each news and every few seconds."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.apps.bank.status import STAGES, Status

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES, _LOOKS = 4, 10  # a second
_EVERY = 5.0  # seconds between two lines without news


@contextmanager
def screen(status: Status, console: Console) -> Iterator[None]:
    """Show a run for as long as the block runs, as the console allows; it is over with the block."""
    with _shown(status, console):
        try:
            yield
        finally:
            status.end()


def _shown(status: Status, console: Console) -> AbstractContextManager[object]:
    if console.is_terminal and not console.is_dumb_terminal:
        return Live(get_renderable=lambda: frame(status), console=console, refresh_per_second=_FRAMES)
    return _printed(status, console)


def frame(status: Status) -> RenderableType:
    """The screen at this moment; when the run is over, only what it did and how long that took."""
    if status.ended is not None:
        return _stages(status)
    figures = _plain_table()
    for row in status.figures():
        figures.add_row("", *row)
    return Group(_stages(status), "", figures)


def _stages(status: Status) -> Table:
    table = _plain_table()
    for name, title in STAGES.items():
        table.add_row(*_stage(status, name, title))
    return table


def _stage(status: Status, name: str, title: str) -> Iterable[RenderableType]:
    if name not in status.entered:
        return "", Text(title, "dim"), "", ""
    took = f"{status.seconds_in(name):.1f} s"
    if name != status.stage or status.complete:
        return Text("✓", "green"), title, took, ""
    if status.ended is not None:
        return Text("✗", "red"), Text(title, "red"), took, "interrupted" if status.interrupted else "failed"
    spinning = _SPINNER[int(10 * status.seconds) % len(_SPINNER)]
    return Text(spinning, "cyan"), Text(title, "bold"), took, Text(status.note, "dim")


def _plain_table() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(width=1)
    table.add_column(width=35)
    table.add_column(width=8, justify="right")
    table.add_column(overflow="ellipsis", no_wrap=True)
    return table


class Lines:
    """A run as plain lines: one at each news, and one every few seconds without any."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._known, self._last = ("", ""), -_EVERY

    def due(self) -> str | None:
        """Return the line to be printed now, if one is."""
        status = self._status
        news = status.stage, status.note
        if news == self._known and status.seconds - self._last < _EVERY:
            return None
        text = self._headline() if news != self._known else self._sentence()
        self._known, self._last = news, status.seconds
        return f"{int(status.seconds) // 60}:{int(status.seconds) % 60:02d}  {text}"

    def _headline(self) -> str:
        title, note = STAGES.get(self._status.stage, ""), self._status.note
        return f"{title}: {note}" if note else title

    def _sentence(self) -> str:
        return "  " + "; ".join(
            f"{name} {value} ({meaning})" for name, value, meaning in self._status.figures()
        )


@contextmanager
def _printed(status: Status, console: Console) -> Iterator[None]:
    lines, over = Lines(status), threading.Event()

    def print_them() -> None:
        while not over.wait(1 / _LOOKS):
            if (line := lines.due()) is not None:
                console.print(line, markup=False, highlight=False, soft_wrap=True)

    thread = threading.Thread(target=print_them, name="lines", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
