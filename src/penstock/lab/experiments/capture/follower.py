"""A follower: brings the changes of the topic into one copy, and measures how late each is seen there."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event

from penstock.lab.experiments.capture.copies import Copy
from penstock.lab.experiments.capture.feed import Change, changes
from penstock.lab.run import Run
from penstock.log.cursor import Cursor

_WAIT = 0.05
_KEPT = 200  # delays, of which figures are made


class Follower:
    """Reads the topic by itself, at its own pace; `pause` says how long it gathers before it writes again."""

    def __init__(self, run: Run, name: str, topic: str, copy: Copy, pause: Callable[[], float]) -> None:
        self.name, self.copy = name, copy
        self._run, self._topic, self._pause = run, topic, pause
        self._delays: deque[float] = deque(maxlen=_KEPT)
        self.applied = 0
        self.last: dict[int, float] = {}  # by row: the delay of its last change

    def work(self, stopped: Event) -> None:
        """Follow until stopped."""
        with Cursor(self._topic, self._run.settings) as cursor:
            cursor.start()
            while not stopped.is_set():
                found = list(changes(cursor.read(500, _WAIT)))
                if found:
                    self.copy.write(found)
                    self._measure(found, time.time())
                    stopped.wait(self._pause())
        self.copy.close()

    def figures(self) -> dict[str, float | int | None]:
        """The delays from commit to copy, in milliseconds, and how many changes came."""
        delays = sorted(self._delays)
        return {
            f"{self.name}_lag": round(delays[len(delays) // 2], 1) if delays else None,
            f"{self.name}_worst": round(delays[-1], 1) if delays else None,
            f"{self.name}_applied": self.applied,
        }

    def _measure(self, found: Sequence[Change], seen: float) -> None:
        streamed = [each for each in found if not each.is_snapshot]
        for each in streamed:
            delay = max(0.0, (seen - each.committed) * 1000)
            self._delays.append(delay)
            self.last[each.id] = delay
        self.applied += len(streamed)
        self._run.flow(
            {"copy": self.name, "id": each.id, "version": each.version, "ms": round(self.last[each.id], 1)}
            for each in streamed
        )
