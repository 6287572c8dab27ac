"""The tables of the leaderboard, and the ranks of players, beside what the games come to."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Self

import psycopg
from psycopg.errors import UndefinedTable

from penstock.apps.demo import Comparison, Figures, Report
from penstock.apps.demo.latency import latency_figures
from penstock.apps.leaderboard.pipeline import BEST
from penstock.apps.leaderboard.rank import rank_of
from penstock.apps.leaderboard.traffic import Traffic

ASKED = 300  # players whose rank is asked for
_TOP = "SELECT place, player, rank, points FROM leaderboard_top"
_PLAYERS = "SELECT player, points FROM leaderboard_players"


@dataclass(frozen=True)
class Answers:
    """What the tables have, and the ranks of some players with the seconds that the answer took."""

    top: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    points: dict[int, int] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    seconds: Sequence[float] = ()

    @classmethod
    def read(cls, dsn: str, players: Sequence[int]) -> Self:
        """Read the tables, and ask for the ranks; all is empty until the flows have made the tables."""
        try:
            with psycopg.connect(dsn) as connection:
                top = {
                    place: (player, rank, points) for place, player, rank, points in connection.execute(_TOP)
                }
                points = dict[int, int](connection.execute(_PLAYERS).fetchall())
                answers = [_asked(connection, player) for player in players]
        except UndefinedTable:
            return cls()
        ranks = {player: rank for player, rank, _ in answers if rank is not None}
        return cls(top, points, ranks, [seconds for *_, seconds in answers])


def _asked(
    connection: "psycopg.Connection[tuple[object, ...]]", player: int
) -> tuple[int, int | None, float]:
    began = time.perf_counter()
    found = rank_of(connection, player)
    return player, None if found is None else found.rank, time.perf_counter() - began


@dataclass(frozen=True)
class Outcome:
    """What came of the games; `delays` are the seconds from a game to the best hundred that have it."""

    traffic: Traffic
    answers: Answers
    delays: Sequence[float] = ()

    @staticmethod
    def asked(traffic: Traffic) -> list[int]:
        """Players to ask for: the best and the worst, and some between."""
        players = sorted(traffic.points, key=lambda player: (traffic.points[player], player))
        chosen = {*players[:10], *players[-10:], *Random(1).sample(players, min(ASKED, len(players)))}  # noqa: S311
        return sorted(chosen)

    def report(self) -> Report:
        """Return the figures, and what is not as the truth has it."""
        games = ("games", f"{self.traffic.sent:,}", f"of {len(self.traffic.points):,} players, in Avro")
        timed = latency_figures(self.delays, f"from a game to the best {BEST} that count it, before the kill")
        asked = latency_figures(self.answers.seconds, "for the rank of a player, on request")
        claim = (
            f"the points of all {len(self.traffic.points):,} players, the best {BEST} and all ranks are right"
        )
        return Report(claim, [games, *self._compared(), *timed, *asked], self.problems)

    @cached_property
    def problems(self) -> list[str]:
        """What is not as the truth has it."""
        return [f"{name}: {each}" for name, made in self._comparisons.items() for each in made.problems]

    @cached_property
    def _comparisons(self) -> dict[str, Comparison]:
        ranks, answers = self.traffic.ranks(), self.answers
        due = {player: ranks[player] for player in self.asked(self.traffic)}
        return {
            "players": Comparison.of(self.traffic.points, answers.points.items()),
            f"best {BEST}": Comparison.of(self.traffic.top(BEST), answers.top.items()),
            "ranks": Comparison.of(due, answers.ranks.items()),
        }

    def _compared(self) -> Figures:
        return [
            (
                name,
                f"{made.due:,}",
                f"compared: {made.lost:,} lost, {made.wrong:,} wrong, {made.unexpected:,} not due",
            )
            for name, made in self._comparisons.items()
        ]
