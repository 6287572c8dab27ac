"""The threads of an experiment: started and stopped together; what one raises is raised."""

import threading
import time
from collections.abc import Callable

Work = Callable[[threading.Event], None]
_PATIENCE = 20.0  # seconds that all of them have together


class Crew:
    """Threads that work until `stopped` is set, which may be the end of the run.

    >>> crew = Crew()
    >>> crew.start("one", lambda stopped: None)
    >>> crew.close()
    """

    def __init__(self, stopped: threading.Event | None = None) -> None:
        self.stopped = stopped or threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def start(self, name: str, work: Work) -> None:
        """Let a thread do this."""
        thread = threading.Thread(target=self._run, args=(work,), name=f"lab-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def check(self) -> None:
        """Raise what a thread has raised."""
        if self._failures:
            raise self._failures[0]

    def close(self) -> None:
        """Stop all of them, and wait a while."""
        self.stopped.set()
        deadline = time.monotonic() + _PATIENCE
        for each in self._threads:
            each.join(max(0.0, deadline - time.monotonic()))

    def _run(self, work: Work) -> None:
        try:
            work(self.stopped)
        except BaseException as error:  # raised again by `check`, in the experiment's own thread
            self._failures.append(error)
