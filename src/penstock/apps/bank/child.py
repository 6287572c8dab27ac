"""One of the bank's processes as a child, which may be killed and started again."""

import os
import subprocess
import sys

from penstock.settings import Settings

_PATIENCE = 10.0  # seconds


class Child:
    """`python -m penstock.apps.bank.worker`; what it logs is in `log`."""

    def __init__(self, work: str, store: str, settings: Settings) -> None:
        self._command = [sys.executable, "-m", "penstock.apps.bank.worker", work, store]
        self._environment = os.environ | settings.environment()
        self.log = settings.data / "logs" / f"bank.{work}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; nothing is waited for."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as said:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=said, stderr=said, start_new_session=True
            )

    def kill(self) -> None:
        """End it with -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_PATIENCE)

    def last_words(self, lines: int = 10) -> str:
        """The end of what it has said."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
