"""The training of the model, in a process of its own."""

import os
import signal
import subprocess
import sys
from types import TracebackType
from typing import Self

from penstock.apps.fraud.events import history
from penstock.apps.fraud.traffic import past_cases
from penstock.errors import InternalError
from penstock.log import Producer
from penstock.settings import Settings
from penstock.testing.driver import signal_all

CASES = 5_000


class Training:
    """Runs while the block does, and is gone after it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._log = settings.data / "logs" / "training.log"

    def __enter__(self) -> Self:
        with Producer(self._settings) as producer:
            producer.send_all(history, past_cases(CASES))
        self._log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "penstock.apps.fraud.model"]
        environment = os.environ | self._settings.environment()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        return self

    @property
    def over(self) -> bool:
        """Whether the model is there; raises if there will be none."""
        if self._process.poll():
            words = self._log.read_text(errors="replace")[-500:]
            raise InternalError(f"the model could not be trained: {words}")
        return self._process.returncode == 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            signal_all(self._process.pid, signal.SIGKILL)
            self._process.wait()
