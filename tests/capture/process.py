"""The command `penstock capture run` as a process that can be killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from penstock.settings import Settings


class CaptureProcess:
    """Runs a capture; what it says goes to a file."""

    def __init__(self, settings: Settings, name: str, folder: Path, *options: str, points=None) -> None:
        self._command = [sys.executable, "-m", "penstock.cli", "capture", "run", name, *options]
        self._environment = os.environ | settings.environment() | (points.environment if points else {})
        self.log = folder / f"capture-{name}.log"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=self._environment, stdout=log, stderr=log
            )

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """As the kernel would: without a word."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def wait(self, seconds: float) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def _end(self, number: int) -> int:
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self._process.wait(60)
