"""Games of many players, of which some play far more than others."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from random import Random

from penstock.apps.leaderboard.events import Game

_EAGER = 0.3  # the share of games that a thousandth of the players play


class Traffic:
    """An endless stream of games; `points` are those of each player, by all that was sent."""

    def __init__(self, players: int, seed: int = 1) -> None:
        self.points: Counter[int] = Counter()
        self.sent = 0
        self._players, self._eager = players, max(1, players // 1000)
        self._random = Random(seed)  # noqa: S311

    def first_games(self, now: datetime) -> Iterator[Game]:
        """Yield a game of each player."""
        for player in range(self._players):
            yield self._game(player, now)

    def next(self, now: datetime) -> Game:
        """Return the game that is over now."""
        among = self._eager if self._random.random() < _EAGER else self._players
        return self._game(self._random.randrange(among), now)

    def top(self, count: int) -> dict[int, tuple[int, int, int]]:
        """Player, rank and points of each place; of equal ones, the greater number is in front."""
        best = sorted(((points, player) for player, points in self.points.items()), reverse=True)[:count]
        return {
            place: (player, 1 + sum(other > points for other, _ in best), points)
            for place, (points, player) in enumerate(best, 1)
        }

    def ranks(self) -> dict[int, int]:
        """The rank of each player: how many have more, plus one."""
        ordered = sorted(self.points.values())
        return {
            player: 1 + len(ordered) - bisect_right(ordered, points) for player, points in self.points.items()
        }

    def _game(self, player: int, now: datetime) -> Game:
        self.sent += 1
        points = self._random.choice((1, 1, 2, 3, 5, 8, 13, 21))
        self.points[player] += points
        return Game(player, points, now, id=f"g{self.sent}")
