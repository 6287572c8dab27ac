"""The commits of all groups over a window of time, read from the broker's own topic of them."""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from penstock.log.cursor import Cursor
from penstock.log.positions import from_time
from penstock.ops.lag.judging import KEPT, WINDOW
from penstock.ops.lag.offset_commits import TOPIC, OffsetCommit, Place, decode
from penstock.settings import Settings

_MOST = 500  # commits of a place: of one that commits more often, the last ones


class CommitLog:
    """Reads commits from a window ago to now, and then what came since: whoever looks again reads little.

    Of a place whose commits are rare, the last ones are kept longer than the window.
    """

    def __init__(self, settings: Settings, window: float = WINDOW) -> None:
        self._settings, self._window = settings, window
        self._lock = threading.Lock()
        self._cursor: Cursor | None = None
        self._found: dict[Place, deque[OffsetCommit]] = defaultdict(lambda: deque(maxlen=_MOST))

    def read(self) -> Mapping[Place, Sequence[OffsetCommit]]:
        """Return the commits by place, the oldest first."""
        with self._lock:  # a look that was given up may still be reading
            try:
                return self._read(time.time())
            except BaseException:
                self.close()
                raise

    def _read(self, now: float) -> Mapping[Place, Sequence[OffsetCommit]]:
        if self._cursor is None:
            self._found.clear()
            self._cursor = Cursor(TOPIC, self._settings)
            self._cursor.start(from_time(datetime.fromtimestamp(now - self._window, UTC)))
        for message in self._cursor.read_to(self._cursor.ends()):
            self._take(decode(message.key(), message.value()))
        self._drop_before(now - self._window)
        return {place: tuple(each) for place, each in self._found.items()}

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def _take(self, commit: OffsetCommit | None) -> None:
        if commit is None:
            return
        if commit.position is None:
            self._found.pop(commit.place, None)
        else:
            self._found[commit.place].append(commit)

    def _drop_before(self, moment: float) -> None:
        for commits in self._found.values():
            while len(commits) > KEPT and commits[0].at < moment:
                commits.popleft()
