"""Flow control of a WebSocket: a client has at most a window of events that it has not acknowledged."""

from collections import deque
from collections.abc import Sequence

import anyio

_LARGEST = 4 * 2**20  # bytes that may be unacknowledged, whatever the window


class Window:
    """Counts what was sent and not acknowledged, in events and in bytes.

    >>> window = Window(2)
    >>> window.sent([10, 10])
    >>> window.room
    0
    >>> window.acknowledge(1), window.acknowledge(2), window.room
    (True, False, 1)
    """

    def __init__(self, size: int) -> None:
        self._size, self._bytes = size, 0
        self._unacknowledged: deque[int] = deque()
        self._opened = anyio.Event()

    @property
    def room(self) -> int:
        """How many events may be sent now."""
        return self._size - len(self._unacknowledged) if self._bytes < _LARGEST else 0

    def sent(self, sizes: Sequence[int]) -> None:
        """Count events that were sent, by their sizes."""
        self._unacknowledged.extend(sizes)
        self._bytes += sum(sizes)

    def acknowledge(self, count: int) -> bool:
        """Count events that the client is done with; False if it can't have got so many."""
        if not 0 < count <= len(self._unacknowledged):
            return False
        self._bytes -= sum(self._unacknowledged.popleft() for _ in range(count))
        self._opened.set()
        return True

    async def wait_for_room(self) -> int:
        """Return how many events may be sent, once there are any."""
        while not self.room:
            self._opened = anyio.Event()
            await self._opened.wait()
        return self.room
