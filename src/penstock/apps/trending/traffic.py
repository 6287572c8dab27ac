"""Posts with hashtags, and trends that were planted: when each began is known."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from random import Random

from penstock.apps.trending.events import Post

FAMOUS = (
    "news", "music", "love", "football", "photo", "food", "travel", "art", "fashion", "movies", "gaming",
    "nature", "fitness", "coffee", "books", "weather", "science", "monday",
)  # fmt: skip
PLANTED = ("meteorshower", "lostcat", "transitstrike", "rainbow", "powercut")  # usually hardly used
REST = 400  # other tags
USERS = 5_000
DISORDER = timedelta(seconds=1)  # how long a post takes to the log, at most
SHARE = 0.06  # of all posts that a trend has while it lasts
LASTS = timedelta(seconds=60)


@dataclass(frozen=True)
class Planted:
    """A trend, and when it began."""

    tag: str
    began: datetime


class Traffic:
    """An endless stream of posts; `planted` are the trends so far, `posts` all that was sent."""

    def __init__(self, seed: int = 1) -> None:
        self.planted: list[Planted] = []
        self.posts: list[tuple[str, datetime]] = []
        self.sent = 0
        self._random = Random(seed)  # noqa: S311
        self._tags = [*FAMOUS, *PLANTED, *(f"tag{number:03d}" for number in range(REST))]
        self._weights = [*accumulate(1 / (rank + 3) for rank in range(len(self._tags)))]

    def history(self, until: datetime, length: timedelta, rate: int) -> Iterator[Post]:
        """Yield posts of the time before a moment, at so many a second, in the order of their times."""
        count = int(length.total_seconds() * rate)
        for number in range(count):
            yield self._post(self._usual(), until - length + number * length / count)

    def plant(self, now: datetime) -> None:
        """Let the next trend begin."""
        self.planted.append(Planted(PLANTED[len(self.planted) % len(PLANTED)], now))

    def next(self, now: datetime) -> Post:
        """Return the post that comes into the log now."""
        at = now - DISORDER * self._random.random()
        risen = [each.tag for each in self.planted if each.began <= at < each.began + LASTS]
        place = int(self._random.random() / SHARE)
        return self._post(risen[place] if place < len(risen) else self._usual(), at)

    def closing(self, now: datetime) -> Iterator[Post]:
        """Yield posts of some users of a minute later: all windows before are over then."""
        for _ in range(50):
            yield self._post("goodnight", now + timedelta(minutes=1))

    def _usual(self) -> str:
        return self._random.choices(self._tags, cum_weights=self._weights)[0]

    def _post(self, tag: str, at: datetime) -> Post:
        at = at.replace(microsecond=at.microsecond // 100_000 * 100_000)
        self.posts.append((tag, at))
        self.sent += 1
        return Post(tag, f"user-{self._random.randrange(USERS)}", at, id=f"post-{self.sent}")
