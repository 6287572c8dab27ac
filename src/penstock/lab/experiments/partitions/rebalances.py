"""The rebalances of a group: how many there were, and for how long partitions stood still."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock

from penstock.documents import Json


@dataclass
class Rebalances:
    """What the members' callbacks say: who has which partition, and since when one has none.

    >>> group = Rebalances()
    >>> group.assigned(1, [0, 1])
    >>> group.revoked(1, [1])
    >>> group.owners
    {0: 1}
    """

    owners: dict[int, int] = field(default_factory=dict)  # by partition: the number of the member
    count: int = 0
    moved: int = 0  # partitions that were taken from one member and given to the same or another one
    pauses: list[float] = field(default_factory=list)  # milliseconds, of each partition that stood still
    _since: dict[int, float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def counted(self) -> None:
        """Another one has come to the member that is there from first to last."""
        with self._lock:
            self.count += 1

    def assigned(self, member: int, partitions: Iterable[int]) -> None:
        """Partitions have come to a member."""
        now = time.monotonic()
        with self._lock:
            for each in partitions:
                self.owners[each] = member
                if (since := self._since.pop(each, None)) is not None:
                    self.pauses.append((now - since) * 1000)
                    self.moved += 1

    def revoked(self, member: int, partitions: Iterable[int]) -> None:
        """Partitions have gone from a member; who is given one later may have it already."""
        now = time.monotonic()
        with self._lock:
            for each in partitions:
                if self.owners.get(each) == member:
                    del self.owners[each]
                    self._since[each] = now

    def figures(self) -> dict[str, Json]:
        """What is shown of it."""
        with self._lock:
            last = self.pauses[-6:]
            return {
                "rebalances": self.count,
                "moved": self.moved,
                "last_pause": round(max(last), 1) if last else None,
                "worst_pause": round(max(self.pauses), 1) if self.pauses else None,
            }

    def held(self) -> dict[int, int]:
        """Return the owners as they are now."""
        with self._lock:
            return dict(self.owners)
