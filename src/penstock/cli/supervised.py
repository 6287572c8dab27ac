"""A process that is watched: one that was killed, or broke, is started again."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from types import FrameType

_BROKE = 1  # what Python ends with after an error that nobody foresaw
_FIRST_PAUSE, _LONGEST_PAUSE, _LONG_ENOUGH, _MOST_IN_A_ROW = 1.0, 30.0, 60.0, 5
_WHEN_PARENT_DIES = 1  # of prctl


def supervise(log: Callable[[str], None], *, again: Collection[int] = ()) -> bool:
    """Return in a child, with whether it is the first; the parent starts it again, and ends as it does.

    Call it before threads and connections are there. The child ends with its parent. `again` are exit codes
    after which it is started again, too.
    """
    parent, watch, is_first = os.getpid(), _Watch(), True
    while True:
        begun, child = time.monotonic(), os.fork()
        if child == 0:
            watch.leave()
            _end_with(parent)
            return is_first
        is_first = False
        status = watch.until_end(child)
        code = os.waitstatus_to_exitcode(status)
        if watch.is_ending or code not in (_BROKE, *again, *range(-64, 0)):
            sys.exit(code if code >= 0 else 128 - code)
        watch.pause(time.monotonic() - begun, code, log)


class _Watch:
    """Hands signals on to the child, and says how long to wait before the next one."""

    def __init__(self) -> None:
        self.is_ending = False
        self._child, self._in_a_row = 0, 0
        ends = (signal.SIGTERM, signal.SIGINT)
        self._before = {each: signal.signal(each, self._hand_on) for each in ends}

    def leave(self) -> None:
        """Let signals be as they were before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def until_end(self, child: int) -> int:
        self._child = child
        if self.is_ending:  # the signal came before the child was known
            self._signal(signal.SIGTERM)
        try:
            return os.waitpid(child, 0)[1]
        finally:
            self._child = 0

    def pause(self, lasted: float, code: int, log: Callable[[str], None]) -> None:
        self._in_a_row = 1 if lasted > _LONG_ENOUGH else self._in_a_row + 1
        what = _described(code)
        if self._in_a_row > _MOST_IN_A_ROW:
            log(f"the process {what} {self._in_a_row} times in a row: giving up")
            sys.exit(code if code >= 0 else 128 - code)
        seconds = min(_FIRST_PAUSE * 2 ** (self._in_a_row - 1), _LONGEST_PAUSE)
        log(f"the process {what}; started again in {seconds:.0f} s")
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.is_ending:
            time.sleep(0.1)
        if self.is_ending:
            sys.exit(0)

    def _hand_on(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.is_ending = True
        self._signal(number)

    def _signal(self, number: int) -> None:
        if self._child:
            with suppress(ProcessLookupError):
                os.kill(self._child, number)


def _described(code: int) -> str:
    if code < 0:
        return f"was ended by signal {-code}"
    return "broke" if code == _BROKE else f"ended with code {code}"


def _end_with(parent: int) -> None:
    """Die when the parent does, where the system can do that (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_WHEN_PARENT_DIES, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(_BROKE)
