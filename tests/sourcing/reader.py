"""A reader that follows the store through the kills of its database, from the position it has come to."""

import threading

from penstock.errors import TryAgainError
from penstock.sourcing import EventStore, Position, tail


class Reader:
    """Follows all events in a thread; `seen` has (category, stream, version, id) of each, in their order."""

    def __init__(self, store: EventStore) -> None:
        self._store, self._stopped = store, threading.Event()
        self.seen: list[tuple[str, str, int, str]] = []
        self.errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(60)

    def _run(self) -> None:
        at: Position | None = None
        while not self._stopped.is_set():
            try:
                for position, each in tail(self._store, after=at, stopped=self._stopped):
                    self.seen.append((each.category, each.stream, each.version, each.id))
                    at = position
            except TryAgainError:
                self._stopped.wait(0.2)
            except BaseException as error:
                self.errors.append(error)
                return
