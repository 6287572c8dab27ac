"""Ending in order: Ctrl-C and its like stop what runs once, and nothing disturbs the cleaning up."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_in_order(report: Callable[[], None]) -> Iterator[None]:
    """Raise KeyboardInterrupt at the first signal to end, and ignore those that come after it.

    `report` is called at that moment. Signals that were ignored before, as by nohup, still are.
    """

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        report()
        raise KeyboardInterrupt

    before = {each: signal.getsignal(each) for each in _SIGNALS}
    before = {each: handler for each, handler in before.items() if handler is not signal.SIG_IGN}
    try:
        for each in before:
            signal.signal(each, end)
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
