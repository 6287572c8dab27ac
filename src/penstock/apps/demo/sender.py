"""Sends an application's traffic at a rate, while something else is waited for."""

import time
from collections.abc import Callable

from penstock.apps.demo.work import Work
from penstock.errors import InternalError

_PAUSE = 0.05  # seconds


def send_for(work: Work, rate: int, seconds: float) -> None:
    """Send for a time."""
    until = time.monotonic() + seconds
    send_until(work, rate, lambda: time.monotonic() >= until, "the end of the time", seconds + 60)


def send_until(work: Work, rate: int, over: Callable[[], bool], what: str, patience: float) -> None:
    """Send at a rate until something is over, but not for ever."""
    began = last = time.monotonic()
    owed = 0.0
    while not over():
        time.sleep(_PAUSE)
        now = time.monotonic()
        owed = min(owed + rate * (now - last), rate)  # a pause is not made up for in one go
        last = now
        work.send(int(owed))
        owed -= int(owed)
        if now - began > patience:
            raise InternalError(f"{what} did not come within {patience:.0f} s")
