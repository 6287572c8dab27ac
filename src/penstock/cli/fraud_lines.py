"""A run of the fraud application as plain lines, where there is no terminal to redraw: CI, a pipe, a file."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from penstock.apps.fraud.status import STAGES, Figures, Status
from penstock.cli.output import milliseconds

_LOOKS = 10  # a second
_EVERY = 5.0  # seconds between two lines without news


class Lines:
    """A run as plain lines: one at each news, and one every few seconds without any."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._known = "", ""
        self._last = -_EVERY

    def due(self) -> str | None:
        """Return the line to be printed now, if one is."""
        status, figures = self._status, self._status.figures()
        news = status.stage, status.note
        if news == self._known and status.seconds - self._last < _EVERY:
            return None
        changed, self._known, self._last = news != self._known, news, status.seconds
        return f"{_clock(status.seconds)}  {_headline(status) if changed else _sentence(status, figures)}"


def _headline(status: Status) -> str:
    title = STAGES.get(status.stage, "")
    return f"{title}: {status.note}" if status.note else title


def _sentence(status: Status, figures: Figures) -> str:
    if status.checked:
        return f"  {status.checked:,} of {status.to_check:,} transactions checked, {figures.alerts:,} alerts"
    return (
        f"  {figures.sent:,} transactions ({figures.sent_rate:,.0f}/s), {figures.alerts:,} alerts "
        f"({figures.alert_rate:,.0f}/s), p50 {milliseconds(figures.p50)}, p99 {milliseconds(figures.p99)}"
    )


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@contextmanager
def printed(status: Status, console: Console) -> Iterator[None]:
    """Print the lines of a run for as long as the block runs."""
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
