"""The threads of an experiment: started and stopped together; what one raises is raised."""

import threading
from collections.abc import Callable

Work = Callable[[threading.Event], None]
_PATIENCE = 20.0


class Crew:
    """Threads that work until `stopped` is set.

    >>> crew = Crew()
    >>> crew.start("one", lambda stopped: None)
    >>> crew.close()
    """

    def __init__(self) -> None:
        self.stopped = threading.Event()
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
        """Stop all of them, and wait."""
        self.stopped.set()
        for each in self._threads:
            each.join(_PATIENCE)

    def _run(self, work: Work) -> None:
        try:
            work(self.stopped)
        except BaseException as error:  # raised again by `check`, in the experiment's own thread
            self._failures.append(error)
