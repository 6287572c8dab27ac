"""The states of all share groups, read from the broker's own topic of them, and what came since."""

import threading
from collections import deque
from collections.abc import Mapping, Sequence

from penstock.log.cursor import Cursor
from penstock.ops.lag.share_states import TOPIC, SharePlace, ShareState, decode
from penstock.settings import Settings

States = Sequence[tuple[float, ShareState]]
_MOST = 500  # states of a place


class ShareLog:
    """Reads the topic from its beginning, as it is compacted, and then what is new."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._cursor: Cursor | None = None
        self._found: dict[SharePlace, deque[tuple[float, ShareState]]] = {}

    def read(self) -> Mapping[SharePlace, States]:
        """Return the states of every place with the times at which they were written, the oldest first."""
        with self._lock:  # a look that was given up may still be reading
            try:
                return self._read()
            except BaseException:
                self.close()
                raise

    def _read(self) -> Mapping[SharePlace, States]:
        if self._cursor is None:
            self._found.clear()
            self._cursor = Cursor(TOPIC, self._settings)
            self._cursor.start()
        for message in self._cursor.read_to(self._cursor.ends()):
            state = decode(message.key(), message.value())
            if state is not None:
                self._take(message.timestamp()[1] / 1000, state)
        return {place: tuple(each) for place, each in self._found.items()}

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def _take(self, at: float, state: ShareState) -> None:
        if state.deleted:
            self._found.pop(state.place, None)
        else:
            self._found.setdefault(state.place, deque(maxlen=_MOST)).append((at, state))
