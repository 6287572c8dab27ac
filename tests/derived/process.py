"""A command of Penstock's, or of a campaign's own, as a process group that can be killed whole."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


class Process:
    """Runs a command; what it prints goes to a file. Killed, its Java goes with it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environment: dict[str, str],
        module: str = "penstock.cli",
    ) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        self._command = [sys.executable, "-m", module, *command]
        self._folder, self._environment = folder, os.environ | environment
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.is_alive:
            return
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def kill(self) -> None:
        """As the kernel would: without a word."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def run(self, seconds: float) -> int:
        """Run it to its end."""
        self.start()
        assert self._running is not None
        return self._running.wait(seconds)

    def _end(self, number: int) -> int:
        if self._running is None:
            return 0
        if self._running.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._running.pid, number)
        return self._running.wait(120)
