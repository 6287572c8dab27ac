"""Where users were, and when: what an event may have seen of them."""

from bisect import bisect_right
from collections import defaultdict

from penstock.apps.enrichment.traffic import Move, first_country

Stay = tuple[float, str | None]  # from when on, and the country


class History:
    """The countries of each user with the moments from which they were there, in seconds since 1970."""

    def __init__(self) -> None:
        self._stays: dict[int, list[Stay]] = defaultdict(list)

    def add(self, move: Move, moment: float) -> None:
        """Note a move that was committed at a moment."""
        self._stays[move.user_id].append((moment, move.country))

    def until(self, user_id: int, moment: float) -> frozenset[str | None]:
        """All countries that a user has had until then."""
        return frozenset(country for since, country in self._of(user_id) if since <= moment)

    def staleness(self, user_id: int, country: str | None, moment: float) -> float:
        """For how long a country was no longer the user's at a moment; 0 if it was, or was to come."""
        stays = self._of(user_id)
        place = bisect_right(stays, moment, key=lambda stay: stay[0])
        if country in {each for _, each in stays[place - 1 :]}:
            return 0.0
        ends = [stays[n + 1][0] for n in range(place - 1) if stays[n][1] == country]
        return moment - ends[-1] if ends else 0.0

    def _of(self, user_id: int) -> list[Stay]:
        return [(0.0, first_country(user_id)), *self._stays[user_id]]
