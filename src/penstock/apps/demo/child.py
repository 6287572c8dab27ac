"""A process of an application's own beside its flows, which may be killed and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from penstock.settings import Settings
from penstock.testing.driver import signal_all

_LONGEST = 500  # letters of a line that is quoted


class Child:
    """`python -m MODULE ARGUMENTS…`; what it logs is in `log`."""

    def __init__(self, name: str, module: str, arguments: Sequence[str], settings: Settings) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._environment = os.environ | settings.environment()
        self.log = settings.data / "logs" / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, unless it runs; nothing is waited for."""
        if self.alive:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as said:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=said, stderr=said, start_new_session=True
            )

    def kill(self) -> None:
        """End it with -9, and all that it has started."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def signal(self, number: int) -> None:
        """Signal it, and all that it has started."""
        if self._process is not None and self._process.poll() is None:
            signal_all(self._process.pid, number)

    def last_words(self, lines: int = 10) -> str:
        """The end of what it has said; Spark's lines may be long."""
        said = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join(line[:_LONGEST] for line in said)
