"""Requests of three services that know nothing of each other, and the notifications that are due for them."""

from collections import deque
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from random import Random

from penstock.apps.notifications.events import Notification

SERVICES = ("orders", "payments", "shipping")
START = datetime(2026, 1, 1, tzinfo=UTC)
EVERY = timedelta(minutes=1)  # between two occasions
AGAIN = timedelta(hours=30)  # more than a day later the same occasion is news again
_USERS = 5_000


class Traffic:
    """An endless stream of requests in the order of their arrival; `due` are the rounds of occasions so far.

    A round is one notification: its requests are within minutes of each other, from up to three services,
    some of which ask twice. One in thirty arrives hours late, and some are the same message once more.
    """

    def __init__(self, seed: int = 1) -> None:
        self.due: dict[str, tuple[str, str]] = {}  # a round, and the user and the occasion that it is of
        self.sent = 0
        self._random = Random(seed)  # noqa: S311
        self._waiting: list[tuple[datetime, int, Notification]] = []
        self._again: deque[tuple[datetime, str, str]] = deque()
        self._begun, self._made = 0, 0

    def next(self) -> Notification:
        """Return the request that arrives next."""
        while not self._waiting or self._waiting[0][0] >= self._begins:
            self._begin()
        _, _, request = heappop(self._waiting)
        self.sent += 1
        self.due[round_of(request.id)] = request.user, request.occasion
        return request

    @property
    def passed(self) -> timedelta:
        """How much event time has passed."""
        return self._begun * EVERY

    @property
    def _begins(self) -> datetime:
        """When the next occasion is."""
        regular = START + self._begun * EVERY
        return min(regular, self._again[0][0]) if self._again else regular

    def _begin(self) -> None:
        begin = self._begins
        if self._again and begin == self._again[0][0]:
            _, user, occasion = self._again.popleft()
            self._ask(begin, user, occasion, round=2)
            return
        user, occasion = f"user-{self._random.randrange(_USERS)}", f"order-{self._begun}"
        self._begun += 1
        self._ask(begin, user, occasion, round=1)
        if self._random.random() < 0.1:
            self._again.append((begin + AGAIN, user, occasion))

    def _ask(self, begin: datetime, user: str, occasion: str, round: int) -> None:
        """Let some services ask, one of ten of them twice."""
        random = self._random
        services = random.sample(SERVICES, random.choice((1, 2, 3, 3)))
        for number, service in enumerate(services + services[:1] * (random.random() < 0.1)):
            later = random.choice((0, 0, random.uniform(0, 90)))  # the others at the same moment
            at = begin + timedelta(seconds=later)
            id, text = f"{occasion}.{round}.{number}", f"{occasion} is on its way"
            self._send(Notification(user, occasion, service, text, at, id=id))

    def _send(self, request: Notification) -> None:
        """Bring a request on its way: one of thirty takes hours, and one of thirty arrives twice."""
        random = self._random
        for _ in range(2 if random.random() < 1 / 30 else 1):
            slow = random.uniform(1800, 6 * 3600) if random.random() < 1 / 30 else random.expovariate(1 / 5)
            self._made += 1
            heappush(self._waiting, (request.at + timedelta(seconds=slow), self._made, request))


def round_of(id: str) -> str:
    """The round that a request belongs to.

    >>> round_of("order-17.2.1")
    'order-17.2'
    """
    return id.rpartition(".")[0]
