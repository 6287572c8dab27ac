"""A thread of an experiment, which ends with the run; what it raises, the experiment raises."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.lab.run_over import RunOver

if TYPE_CHECKING:
    from penstock.lab.run import Run


class Background:
    """Runs `work` beside the experiment; `work` looks at `is_closing` several times a second."""

    def __init__(self, run: "Run", name: str, work: Callable[["Background"], None]) -> None:
        self._run, self._work, self._closing = run, work, threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()
        run.cleanup.callback(self.close)

    @property
    def is_closing(self) -> bool:
        """Whether it is to end: all of a run's end together."""
        return self._closing.is_set() or self._run.closing.is_set()

    def rest(self, seconds: float) -> None:
        """Wait, but not beyond its end."""
        self._closing.wait(seconds)

    def check(self) -> None:
        """Raise what it has failed of."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End it, and wait for that."""
        self._closing.set()
        self._thread.join(30)

    def _live(self) -> None:
        try:
            self._work(self)
        except RunOver:
            return
        except BaseException as error:
            self._failure = error
