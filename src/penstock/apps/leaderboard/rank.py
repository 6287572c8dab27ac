"""The rank of any player, on request: how many players have more points, counted by levels."""

from dataclasses import dataclass
from typing import Any

import psycopg

from penstock.apps.leaderboard.pipeline import WIDTHS

_FINE, _COARSE = WIDTHS
_RANK = """
SELECT points, 1 + coalesce((
    SELECT sum(players) FROM leaderboard_levels WHERE width = %(coarse)s AND level > points / %(coarse)s
), 0) + coalesce((
    SELECT sum(players) FROM leaderboard_levels
    WHERE width = %(fine)s AND level > points AND level < (points / %(coarse)s + 1) * %(coarse)s
), 0)
FROM leaderboard_players WHERE player = %(player)s
"""


@dataclass(frozen=True)
class Rank:
    """The points of a player; the rank is one more than the number of players who have more."""

    player: int
    points: int
    rank: int


def rank_of(connection: "psycopg.Connection[Any]", player: int) -> Rank | None:
    """Return the rank of a player; None for one who has not played."""
    asked = {"player": player, "fine": _FINE, "coarse": _COARSE}
    found = connection.execute(_RANK, asked).fetchone()
    return None if found is None else Rank(player, found[0], int(found[1]))
