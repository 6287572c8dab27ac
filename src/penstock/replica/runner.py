"""A replica at work: one session after another, until it is stopped or can't go on."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg

from penstock.capture.replication import connect
from penstock.errors import FencedError, PenstockError, ReplicaHeldError, TryAgainError
from penstock.replica.ledger import Ledger, label
from penstock.replica.replica import Replica
from penstock.replica.session import Applied, Session
from penstock.settings import Settings

_log = logging.getLogger("penstock")
_FIRST_PAUSE, _LONGEST_PAUSE, _LONG_ENOUGH = 1.0, 30.0, 60.0


class ReplicaRunner:
    """Runs a replica until `stopped` is set; what may pass is tried again, anything else is raised.

    With `begin_anew`, the copy is emptied first, and all of the log is read again.
    """

    def __init__(
        self,
        settings: Settings,
        replica: Replica,
        stopped: threading.Event,
        *,
        begin_anew: bool = False,
        log: Callable[[str], None] = _log.info,
        report: Callable[[Applied], None] = lambda _: None,
    ) -> None:
        self._settings, self._replica, self._stopped = settings, replica, stopped
        self._begin_anew, self._log, self._report = begin_anew, log, report

    def run(self) -> None:
        """Run sessions one after the other."""
        pause = _FIRST_PAUSE
        while not self._stopped.is_set():
            begun = time.monotonic()
            try:
                self._run_session()
                pause = _FIRST_PAUSE
            except TryAgainError as error:
                lasted = time.monotonic() - begun
                pause = _FIRST_PAUSE if lasted > _LONG_ENOUGH else min(2 * pause, _LONGEST_PAUSE)
                self._log(f"{error}; again in {pause:.0f} s")
                self._stopped.wait(pause)
            except (ReplicaHeldError, FencedError):
                raise  # the other one is well, and its state is not ours to write
            except PenstockError as error:
                self._note(str(error))
                raise

    def _run_session(self) -> None:
        session = Session(
            self._settings,
            self._replica,
            self._stopped,
            begin_anew=self._begin_anew,
            log=self._log,
            report=self._report,
        )
        try:
            session.run()
        finally:
            self._begin_anew = self._begin_anew and not session.has_begun

    def _note(self, error: str) -> None:
        """Write down what has ended it, if its database can be reached."""
        with suppress(PenstockError, psycopg.Error):
            name = label(self._settings.namespace, self._replica.name)
            with connect(self._settings.dsn(self._replica.connection), "penstock replica") as connection:
                Ledger(connection, name).fail(error)
