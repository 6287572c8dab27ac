"""Long work of a command: what is under way is said on standard error, so that silence means nothing."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from penstock.cli.output import errors

Report = Callable[[str | None, str], None]
FIRST, EVERY = 2.0, 15.0  # seconds until the first line, and between two


@contextmanager
def underway(what: str, *, first: float = FIRST, every: float = EVERY) -> Iterator[None]:
    """Say what is being done, and for how long by now, as long as the block lasts; nothing if it is quick."""
    ended = threading.Event()
    thread = threading.Thread(target=_speak, args=(what, ended, first, every), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def until_first_report(
    report: Report, what: str, *, first: float = 15.0, every: float = 30.0
) -> Iterator[Report]:
    """Say what is waited for until something is reported; yield what it is to be reported to."""
    with ExitStack() as stack:
        stack.enter_context(underway(what, first=first, every=every))

        def heard(flow: str | None, text: str) -> None:
            stack.close()
            report(flow, text)

        yield heard


def _speak(what: str, ended: threading.Event, first: float, every: float) -> None:
    began, pause = time.monotonic(), first
    while not ended.wait(pause):
        errors.print(f"{what}, {time.monotonic() - began:.0f} s so far", markup=False, highlight=False)
        pause = every
