"""The other side of `Worker`: the orders that a process of an experiment gets, and how it reports."""

import json
import os
import sys
import threading

from penstock.documents import Json, JsonObject


class Orders:
    """The latest value of each name that came; it is over when nobody gives orders any more."""

    def __init__(self) -> None:
        self._values: JsonObject = json.loads(sys.stdin.readline() or "{}")
        self._lock, self._over = threading.Lock(), threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def __getitem__(self, name: str) -> Json:
        with self._lock:
            return self._values[name]

    def __contains__(self, name: str) -> bool:
        with self._lock:
            return name in self._values

    def once(self, name: str) -> Json:
        """Return a value and forget it; None if there is none."""
        with self._lock:
            return self._values.pop(name, None)

    @property
    def is_over(self) -> bool:
        """Whether it is time to end."""
        return self._over.is_set()

    def rest(self, seconds: float) -> bool:
        """Wait, or until it is time to end; return whether it goes on."""
        return not self._over.wait(seconds)

    def _listen(self) -> None:
        for line in sys.stdin:
            with self._lock:
                self._values |= json.loads(line)
        self._over.set()


def report(**line: Json) -> None:
    """Report a line, at once and whole."""
    os.write(1, json.dumps(line).encode() + b"\n")
