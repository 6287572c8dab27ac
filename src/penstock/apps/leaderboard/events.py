"""What the leaderboard reads and writes: compact, in Avro."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Topic


@dataclass(frozen=True)
class Game(Event):
    """A player has won points in a game."""

    player: int
    points: int
    at: datetime


@dataclass(frozen=True)
class Total(Event):
    """The points of a player in all, and those before: none for a player who is new."""

    player: int
    before: int | None
    points: int
    at: datetime


games = Topic("leaderboard.games", Game, key="player", partitions=2, format="avro")
totals = Topic("leaderboard.totals", Total, key="player", partitions=2, format="avro")
TOPICS = (games, totals)
