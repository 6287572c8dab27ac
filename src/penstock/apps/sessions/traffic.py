"""Views of users whose telephones are offline now and then: some views come an hour late, a few too late."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from random import Random

from penstock.apps.sessions.events import View

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
_STRAGGLERS = 100  # a lonely view, far too late, for so many sessions


class Traffic:
    """An endless stream of views in the order of their arrival; `sent` are those so far.

    Most arrive within seconds, one in ten within minutes. Where a user was offline, a view arrives more than
    an hour late, and is the bridge between two sessions, or the first view of one.
    """

    def __init__(self, users: int = 1_500, seed: int = 1) -> None:
        self.sent: list[View] = []
        self._random = Random(seed)  # noqa: S311
        self._waiting: list[tuple[datetime, int, View]] = []
        self._begins = [(START + self._minutes(0, 120), f"user-{number}") for number in range(users)]
        self._begins.sort()
        self._made, self._begun = 0, 0

    def next(self) -> View:
        """Return the view that arrives next."""
        while not self._waiting or self._waiting[0][0] >= self._begins[0][0]:
            self._begin()
        self.sent.append(heappop(self._waiting)[2])
        return self.sent[-1]

    def closing(self, partitions: int) -> Iterator[tuple[View, int]]:
        """Yield a view for each partition that is a day later than all others: it closes their sessions."""
        end = max(view.at for view in self.sent) + 24 * HOUR
        for number in range(partitions):
            yield View(f"closing-{number}", "/", 1, end), number

    def rest(self) -> Iterator[View]:
        """Yield what is still on its way; no more sessions begin."""
        while self._waiting:
            self.sent.append(heappop(self._waiting)[2])
            yield self.sent[-1]

    def _minutes(self, least: float, most: float) -> timedelta:
        return self._random.uniform(least, most) * MINUTE

    def _begin(self) -> None:
        begin, user = heappop(self._begins)
        end = self._session(user, begin)
        heappush(self._begins, (end + self._minutes(31, 240), user))
        self._begun += 1
        if self._begun % _STRAGGLERS == 0:
            self._view(f"straggler-{self._begun}", begin, late=3.5 * HOUR)

    def _session(self, user: str, at: datetime) -> datetime:
        """Make the views of a session, and return when the last one is."""
        random, offline = self._random, self._random.random()
        first_late = offline < 0.05
        self._view(user, at, late=self._minutes(60, 100) if first_late else None)
        for _ in range(random.randrange(3 if offline < 0.2 else 12)):
            at += min(25.0, random.choice((0.0, 1.0, 1.0, 1.0)) * random.expovariate(1 / 4)) * MINUTE
            self._view(user, at)
        if 0.05 < offline < 0.2:  # two views that are 50 minutes apart, and the one in the middle comes late
            self._view(user, at + 25 * MINUTE, late=self._minutes(60, 100))
            at += 50 * MINUTE
            self._view(user, at)
        return at

    def _view(self, user: str, at: datetime, late: timedelta | None = None) -> None:
        random = self._random
        delay = late or (self._minutes(0, 8) if random.random() < 0.1 else self._minutes(0, 0.5))
        page, load_ms = f"/{random.randrange(40)}", round(random.lognormvariate(5, 0.6))
        self._made += 1
        heappush(self._waiting, (at + delay, self._made, View(user, page, load_ms, at, id=f"v{self._made}")))
