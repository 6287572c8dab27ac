"""How fast each client may ask: a bucket of tokens for each address, filled at a steady rate."""

from collections import OrderedDict
from dataclasses import dataclass, field

_MOST = 10_000  # clients that are remembered; a bucket that was not used for long is full anyway


@dataclass
class TokenBuckets:
    """Lets each client ask `burst` times at once, and `rate` times a second on the whole.

    >>> buckets = TokenBuckets(rate=1, burst=2)
    >>> [buckets.wait("a", now=0.0) for _ in range(3)], buckets.wait("b", now=0.0)
    ([0.0, 0.0, 1.0], 0.0)
    """

    rate: float
    burst: float
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def wait(self, client: str, now: float) -> float:
        """Take a token; return how long to wait for one if there is none, and take none."""
        tokens, at = self._buckets.pop(client, (self.burst, now))
        tokens = min(self.burst, tokens + (now - at) * self.rate)
        taken = tokens - 1 if tokens >= 1 else tokens
        self._buckets[client] = (taken, now)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        return 0.0 if tokens >= 1 else (1 - tokens) / self.rate
