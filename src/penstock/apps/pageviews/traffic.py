"""Views of a site with known truth: some pages are viewed far more than others, and some views come late."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import accumulate
from math import pi, sin
from random import Random

from penstock.apps.pageviews.events import View
from penstock.apps.pageviews.truth import Truth, place_of

FRONT = (
    "/", "/pricing", "/products", "/products/turbine", "/products/valve", "/products/penstock", "/blog",
    "/blog/what-a-river-carries", "/blog/counting-drops", "/blog/the-night-shift", "/blog/late-but-welcome",
    "/docs", "/docs/first-steps", "/docs/windows", "/docs/joins", "/docs/recovery", "/about", "/careers",
    "/contact", "/login", "/sign-up", "/status", "/search", "/cart", "/checkout",
)  # fmt: skip
REST = 4_000  # pages that hardly anybody looks at
VISITORS = 20_000
DISORDER = timedelta(seconds=3)  # how long a view that is on time takes to the log, at most
LATE = (timedelta(seconds=90), timedelta(minutes=8))  # how long a phone was offline
TOO_LATE = (timedelta(minutes=25), timedelta(minutes=35))
_OF_THE_FRONT, _MOBILE, _OFFLINE, _LONG_OFFLINE = 0.7, 0.5, 0.06, 0.002  # shares
_MINUTE = timedelta(minutes=1)


class Traffic:
    """An endless stream of views; `truth` knows what was sent."""

    def __init__(self, seed: int = 1) -> None:
        self.truth = Truth()
        self.sent = 0
        self._random = Random(seed)  # noqa: S311
        self._rest = [*accumulate(1 / (rank + 20) for rank in range(REST))]
        self._second, self._front = -1, [1.0]

    def history(self, until: datetime, minutes: int, a_minute: int) -> Iterator[View]:
        """Yield views of the minutes before a moment, in the order of their times."""
        for number in range(minutes * a_minute):
            yield self.truth.note(self._view(until - minutes * _MINUTE + number * _MINUTE / a_minute))

    def next(self, now: datetime) -> View:
        """Return the view that comes into the log now; it may have happened long before."""
        random = self._random
        device = "mobile" if random.random() < _MOBILE else "desktop"
        offline = random.random() if device == "mobile" else 1.0
        if offline < _LONG_OFFLINE:
            view = self._view(now - _between(random, *TOO_LATE), device)
            self.truth.too_late[view.id] = place_of(view)
        elif offline < _OFFLINE:
            view = self._view(now - _between(random, *LATE), device)
            self.truth.late += 1
        else:
            view = self._view(now - _between(random, timedelta(0), DISORDER), device)
            self.truth.prompt.append(view)
        return self.truth.note(view)

    def closing(self, now: datetime) -> Iterator[View]:
        """Yield a view of each page of the front, so much later that all minutes before are over."""
        for url in FRONT:
            self.sent += 1
            view = View(url, "visitor-0", "desktop", now + 3 * _MINUTE, id=f"view-{self.sent}")
            self.truth.open[place_of(view)] += 1
            yield view

    def _view(self, at: datetime, device: str = "desktop") -> View:
        self.sent += 1
        at = at.replace(microsecond=at.microsecond // 100_000 * 100_000)  # clocks of browsers are coarse
        visitor = f"visitor-{self._random.randrange(VISITORS)}"
        return View(self._url(at), visitor, device, at, id=f"view-{self.sent}")

    def _url(self, at: datetime) -> str:
        random = self._random
        if random.random() < _OF_THE_FRONT:
            return random.choices(FRONT, cum_weights=self._weights(int(at.timestamp())))[0]
        (page,) = random.choices(range(REST), cum_weights=self._rest)
        return f"/archive/{page:04d}"

    def _weights(self, second: int) -> list[float]:
        """How much each page of the front is wanted: that rises and falls, each page at its own pace."""
        if second != self._second:
            waves = (1 + 0.7 * sin(2 * pi * second / (40 + 9 * rank) + rank) for rank in range(len(FRONT)))
            self._front = [*accumulate(wave / (rank + 2) for rank, wave in enumerate(waves))]
            self._second = second
        return self._front


def _between(random: Random, least: timedelta, most: timedelta) -> timedelta:
    return least + (most - least) * random.random()
