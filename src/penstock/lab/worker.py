"""A process of an experiment: it gets orders and reports by lines of JSON, and can be killed."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.documents import JsonObject
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.lab.run import Run

_HEARD_WITHIN = 10.0


class Worker:
    """`python -m MODULE`, with its first orders; it ends with the run, or when its standard input does.

    `heard` is called in a thread with every line that it reports; what it says besides is in `log`.
    """

    def __init__(
        self, module: str, orders: JsonObject, run: "Run", heard: Callable[[JsonObject], None]
    ) -> None:
        settings = run.settings
        self._heard = heard
        self.log = settings.data / "logs" / f"{module.rpartition('.')[2]}.lab.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                env=os.environ | settings.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, name=f"lab-{self.pid}", daemon=True)
        self._listener.start()
        run.adopt(self)
        self.send(orders)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def send(self, message: JsonObject) -> None:
        """Send it a line; one that has ended hears nothing."""
        assert self._process.stdin is not None  # noqa: S101
        with suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """End it with -9; what it reported before is heard."""
        self._process.kill()
        self._process.wait()
        self._listener.join(_HEARD_WITHIN)

    def ask_to_end(self) -> None:
        """Let it end in order."""
        assert self._process.stdin is not None  # noqa: S101
        with suppress(OSError, ValueError):
            self._process.stdin.close()

    def check(self) -> None:
        """Raise if it ended by itself."""
        code = self._process.poll()
        if code not in (None, 0, -signal.SIGKILL):
            message = f"process {self.pid} of the experiment ended with {code}"
            raise PenstockError(message, hint=f"see {self.log}")

    def _listen(self) -> None:
        assert self._process.stdout is not None  # noqa: S101
        for line in self._process.stdout:
            with suppress(ValueError):  # half a line of one that was killed
                self._heard(json.loads(line))
