"""A capture at work: one session after another, until it is stopped or can't go on."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from penstock.capture.capture import Capture
from penstock.capture.database import make_session
from penstock.capture.output import Report
from penstock.capture.store import State, Store
from penstock.capture.wishes import Wishes
from penstock.errors import CaptureHeldError, PenstockError, TryAgainError
from penstock.settings import Settings

Log = Callable[[str], None]
_log = logging.getLogger("penstock")
_FIRST_PAUSE, _LONGEST_PAUSE, _LONG_ENOUGH = 1.0, 30.0, 60.0
_GLANCE = 3.0


class Runner:
    """Runs a capture until `wishes.stopped` is set; what may pass is tried again, anything else is raised."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        wishes: Wishes,
        *,
        report: Report = lambda _: None,
        log: Log = _log.info,
    ) -> None:
        self._settings, self._name, self._wishes = settings, name, wishes
        self._report, self._log = report, log
        self._store = Store(settings)
        self._has_run = False

    def run(self) -> None:
        """Run sessions one after the other."""
        pause, stopped = _FIRST_PAUSE, self._wishes.stopped
        while not stopped.is_set():
            begun = time.monotonic()
            try:
                capture = self._declared()
                if capture is None:
                    self._log(f"capture {self._name} was removed")
                    return
                self._run_session(capture)
                pause = _FIRST_PAUSE
            except TryAgainError as error:
                lasted = time.monotonic() - begun
                pause = _FIRST_PAUSE if lasted > _LONG_ENOUGH else min(2 * pause, _LONGEST_PAUSE)
                self._log(f"{error}; again in {pause:.0f} s")
                self._note("waiting", str(error))
                stopped.wait(pause)
            except CaptureHeldError:
                raise  # the other one is well, and its state is not ours to write
            except PenstockError as error:
                self._note("failed", str(error))
                raise
        self._note("stopped")

    def _declared(self) -> Capture | None:
        """The capture as it is declared now; None if it is there no more."""
        if self._has_run and not self._store.has(self._name):
            return None
        found = self._store.get(self._name)
        self._has_run = True
        return found

    def _run_session(self, capture: Capture) -> None:
        if capture.paused:
            self._note("paused")
            self._await_change(capture, self._wishes.stopped)
            return
        ended = threading.Event()
        session = make_session(self._settings, capture, replace(self._wishes, stopped=ended), self._report)
        try:
            with self._watched(capture, ended):
                self._note("running")
                session.run()
        finally:
            self._wishes = replace(self._wishes, goes_on=True)
            if session.has_begun:  # these were wanted once
                self._wishes = replace(self._wishes, snapshot_again=False, accept_timeline=False)

    @contextmanager
    def _watched(self, capture: Capture, ended: threading.Event) -> Iterator[None]:
        """End a session when it is to stop, or when its declaration has changed."""
        watcher = threading.Thread(target=self._watch, args=(capture, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def _watch(self, capture: Capture, ended: threading.Event) -> None:
        try:
            self._await_change(capture, ended)
        finally:  # whatever became of it: a session without its watcher could not be stopped
            ended.set()

    def _await_change(self, capture: Capture, ended: threading.Event) -> None:
        looked_at = time.monotonic()
        while not ended.wait(0.1) and not self._wishes.stopped.is_set():
            if time.monotonic() - looked_at < _GLANCE:
                continue
            with suppress(TryAgainError):
                if not self._store.has(self._name) or self._store.get(self._name) != capture:
                    return
            looked_at = time.monotonic()

    def _note(self, state: str, error: str = "") -> None:
        """Write down how it is; while the log is not there, that has to wait."""
        with suppress(TryAgainError):
            self._store.report(self._name, State.now(state, error))
