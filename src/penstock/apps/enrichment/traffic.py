"""Users who move from country to country, and what they do meanwhile."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from random import Random

from penstock.apps.enrichment.events import Activity

COUNTRIES = ("AT", "BR", "CA", "DE", "EG", "FR", "IN", "JP", "NG", "US")
KINDS = ("view", "search", "buy")
USERS = 100_000
UNKNOWN = 1_000  # users who do something, and have no row


@dataclass(frozen=True)
class Move:
    """A change of a user's row; without a country it is deleted."""

    user_id: int
    country: str | None


def first_country(user_id: int) -> str | None:
    """The country of a user before anybody moved."""
    return COUNTRIES[user_id % len(COUNTRIES)] if user_id < USERS else None


class Traffic:
    """Activity and moves; a few users are busy, so that many of those who move do something, too."""

    def __init__(self, seed: int = 1) -> None:
        self.sent = self.moved = 0
        self.last: dict[int, str | None] = {}  # where those are who have moved
        self._random = Random(seed)  # noqa: S311

    def next(self, at: datetime) -> Activity:
        """Return what somebody does at a time."""
        self.sent += 1
        return self._activity(self._somebody(USERS + UNKNOWN), at)

    def move(self) -> Move:
        """Return who moves next: one in a hundred has left, and may come back."""
        random, user = self._random, self._somebody(USERS)
        country = None if random.random() < 0.01 else random.choice(COUNTRIES)
        self.moved += 1
        self.last[user] = country
        return Move(user, country)

    def final(self, at: datetime) -> Iterator[Activity]:
        """Yield something that everybody does who has moved: by now it is known where they are."""
        for user in self.last:
            self.sent += 1
            yield self._activity(user, at)

    def country(self, user_id: int) -> str | None:
        """Where a user is now."""
        return self.last.get(user_id, first_country(user_id))

    def _somebody(self, among: int) -> int:
        return self._random.randrange(2_000 if self._random.random() < 0.5 else among)

    def _activity(self, user: int, at: datetime) -> Activity:
        return Activity(user, self._random.choice(KINDS), at, id=f"a{self.sent}")
