"""Views of known disorder: users come and go, and some views are sent seconds after they happened."""

import heapq
from dataclasses import dataclass, field
from random import Random

USERS = ("ann", "bob", "eve")
_ACTIVE, _PERIOD = 6.0, 11.0  # seconds that a user is there, of so many
_JITTER = 0.3  # seconds by which every view may come later than the one before it


@dataclass(frozen=True, order=True)
class Made:
    """A view: when it is sent, which one it is, whose, and when it happened; seconds since the beginning."""

    sent: float
    n: int
    user: str = field(compare=False)
    at: float = field(compare=False)


@dataclass
class Disorder:
    """Makes views as time goes on, and hands them out when they are due.

    >>> made = Disorder(seed=1)
    >>> found = [each for second in range(20) for each in made.until(second + 1.0, rate=10)]
    >>> len(found) > 150, found == sorted(found), {each.user for each in found} == set(USERS)
    (True, True, True)
    """

    seed: int
    begin: float = 0.0
    _random: Random = field(init=False)
    _waiting: list[Made] = field(default_factory=list)
    _now: float = field(init=False)
    _count: int = 0

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311 (no secret)
        self._now = self.begin

    @property
    def waiting(self) -> int:
        """How many views have happened and are not sent yet."""
        return len(self._waiting)

    def until(self, now: float, *, rate: float, share: float = 0.0, delay: float = 0.0) -> list[Made]:
        """Return the views that are due; a `share` of new ones comes up to `delay` seconds late."""
        while rate > 0 and self._now < now:
            self._now += self._random.expovariate(rate)
            self._make(min(self._now, now), share, delay)
        self._now = max(self._now, now) if rate <= 0 else self._now
        due = []
        while self._waiting and self._waiting[0].sent <= now:
            due.append(heapq.heappop(self._waiting))
        return due

    def _make(self, at: float, share: float, delay: float) -> None:
        there = [each for place, each in enumerate(USERS) if (at + 4 * place) % _PERIOD < _ACTIVE]
        user = self._random.choice(there or USERS)
        is_late = self._random.random() < share
        wait = self._random.uniform(delay / 2, delay) if is_late else self._random.uniform(0, _JITTER)
        heapq.heappush(self._waiting, Made(at + wait, self._count, user, at))
        self._count += 1
