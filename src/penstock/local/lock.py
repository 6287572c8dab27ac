"""A lock between processes: whoever holds the file, works; the others wait."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, report: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Hold the lock at `path`; the kernel lets go of it however the holder ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another penstock that holds {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
