"""A run of an application while it runs: redrawn in place, or, without a terminal, a line now and then."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.apps.demo.status import RunStatus

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES, _LOOKS = 4, 10  # a second
_EVERY = 5.0  # seconds between two lines without news
_TITLES = 35  # letters of the longest title


def screen(status: RunStatus, console: Console) -> AbstractContextManager[None]:
    """Show a run with its figures for as long as the block runs."""
    return run_screen(status, console, lambda: frame(status), lines_of(status))


def frame(status: RunStatus) -> RenderableType:
    """The screen at this moment; when the run is over, only what it did and how long that took."""
    stages = stages_of(status, _TITLES)
    return stages if status.ended is not None else Group(stages, "", _figures(status))


def _figures(status: RunStatus) -> Table:
    table = plain_table()
    table.add_column(width=1)
    table.add_column(width=_TITLES)
    table.add_column(width=8, justify="right")
    table.add_column(overflow="ellipsis", no_wrap=True)
    for row in status.figures():
        table.add_row("", *row)
    return table


def lines_of(status: RunStatus) -> "RunLines":
    """The run as plain lines, where there is no terminal to redraw."""
    return RunLines(
        status, lambda: "; ".join(f"{name} {value} ({what})" for name, value, what in status.figures())
    )


@contextmanager
def run_screen(
    status: RunStatus, console: Console, frame: Callable[[], RenderableType], lines: "RunLines"
) -> Iterator[None]:
    """Show a run for as long as the block runs, as the console allows; it is over with the block."""
    with _shown(console, frame, lines):
        try:
            yield
        finally:
            status.end()


def _shown(
    console: Console, frame: Callable[[], RenderableType], lines: "RunLines"
) -> AbstractContextManager[object]:
    if console.is_terminal and not console.is_dumb_terminal:
        return Live(get_renderable=frame, console=console, refresh_per_second=_FRAMES)
    return _printed(lines, console)


def plain_table() -> Table:
    return Table(box=None, show_header=False, pad_edge=False)


def stages_of(status: RunStatus, width: int) -> Table:
    """The stages of a run, a row each, with titles of up to `width` letters."""
    table = plain_table()
    table.add_column(width=1)
    table.add_column(width=width)
    table.add_column(width=7, justify="right")
    table.add_column(style="dim", overflow="ellipsis", no_wrap=True)
    for name, title in status.stages.items():
        table.add_row(*_stage(status, name, title))
    return table


def _stage(status: RunStatus, name: str, title: str) -> Iterable[RenderableType]:
    if name not in status.entered:
        return "", Text(title, "dim"), "", ""
    took = f"{status.seconds_in(name):.1f} s"
    if name != status.stage or status.complete:
        return Text("✓", "green"), title, took, ""
    if status.ended is not None:
        return Text("✗", "red"), Text(title, "red"), took, "interrupted" if status.interrupted else "failed"
    spinning = _SPINNER[int(10 * status.seconds) % len(_SPINNER)]
    return Text(spinning, "cyan"), Text(title, "bold"), took, status.note


class RunLines:
    """A run as plain lines: one at each news, and `sentence` every few seconds without any."""

    def __init__(self, status: RunStatus, sentence: Callable[[], str]) -> None:
        self._status, self._sentence = status, sentence
        self._known, self._last = ("", ""), -_EVERY

    def due(self) -> str | None:
        """Return the line to be printed now, if one is."""
        status = self._status
        news, seconds = (status.stage, status.note), status.seconds
        if news == self._known and seconds - self._last < _EVERY:
            return None
        text = self._headline() if news != self._known else f"  {self._sentence()}"
        self._known, self._last = news, seconds
        return f"{int(seconds) // 60}:{int(seconds) % 60:02d}  {text}"

    def _headline(self) -> str:
        title, note = self._status.stages.get(self._status.stage, ""), self._status.note
        return f"{title}: {note}" if note else title


@contextmanager
def _printed(lines: RunLines, console: Console) -> Iterator[None]:
    over = threading.Event()

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
