"""A cache that forgets what was used longest ago, so that it never grows beyond its bound."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_LEAST = 100  # what an entry weighs at least


class BoundedCache(Generic[K, V]):
    """Keeps values up to a total weight; threads may share it.

    >>> cache = BoundedCache[str, int](300)
    >>> for name in "abcd":
    ...     cache.put(name, ord(name), 1)
    >>> cache.get("a"), cache.get("d")
    (None, 100)
    """

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Keep a value, unless it alone is too much."""
        weight = max(weight, _LEAST)
        with self._lock:
            if weight > self._most or key in self._entries:
                return
            self._entries[key] = (value, weight)
            self._weight += weight
            while self._weight > self._most:
                _, (_, gone) = self._entries.popitem(last=False)
                self._weight -= gone
