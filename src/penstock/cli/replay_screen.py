"""What `penstock replay` shows: a bar and an estimate, or a line now and then where there is no terminal."""

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn

from penstock.cli.output import console

if TYPE_CHECKING:
    from penstock.pipeline.replay_progress import ReplayProgress

_EVERY = 0.5
_LINE_EVERY = 5.0


class ReplayScreen:
    """Looks at a replay's progress in a thread of its own, until it is closed."""

    def __init__(self, progress: "ReplayProgress") -> None:
        self._progress = progress
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="replay screen", daemon=True)
        self._bar = Progress(
            BarColumn(), TextColumn("{task.description}", markup=False), console=console, transient=True
        )
        self._task = self._bar.add_task("", total=max(1, progress.estimate.there))
        self._line_at = time.monotonic()

    def __enter__(self) -> "ReplayScreen":
        if console.is_terminal:
            self._bar.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(10)
        self._bar.stop()

    def _follow(self) -> None:
        """A progress that can't be had does not disturb the replay."""
        while not self._closing.wait(_EVERY):
            with suppress(Exception):
                self._show()

    def _show(self) -> None:
        seen = self._progress.look()
        if console.is_terminal:
            self._bar.update(self._task, completed=seen.read, description=str(seen))
        elif time.monotonic() - self._line_at > _LINE_EVERY:
            self._line_at = time.monotonic()
            console.print(str(seen), markup=False, highlight=False)
