"""Java out of reach of signals that are meant for us.

A supervisor, `timeout` or a terminal signals the whole group: if Java ended first, flows could not end their
batches in order. What it starts with ignored stays ignored; it ends when its parent does.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_starting = threading.Event()


@contextmanager
def unsignalled() -> Iterator[None]:
    """Let processes that are started here, by a fork, ignore that they are to end."""
    _starting.set()
    try:
        yield
    finally:
        _starting.clear()


def _ignore() -> None:
    if _starting.is_set():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


os.register_at_fork(after_in_child=_ignore)
